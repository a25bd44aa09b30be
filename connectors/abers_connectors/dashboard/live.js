// Fills the live page with the documents of its server. All words, numbers and pictures come from
// there, as HTML without scripts; elements that are there stay, and with them what a reader has
// opened, chosen, scrolled or focused.
"use strict";

const byId = (id) => document.getElementById(id);
const models = byId("models");
const search = byId("search");

const RETRY = 3000; // milliseconds until a connection that was refused is tried again
const LIST = 10_000; // milliseconds between two orders of the list of models, at least
const UNITS = [[86_400, "d"], [3600, "h"], [60, "min"]];
const VOID = { order: [], answers: {}, parts: {} };

let chosen = new URLSearchParams(location.search).get("model");
let source = null; // of events
let shown = VOID; // the newest document
let labelled = null; // when the last label came, by the clock of the browser
let listed = { html: "", at: -Infinity }; // the newest list of models, and when it was shown

// Connection

function connect() {
  source?.close();
  shown = VOID;
  const query = chosen === null ? "" : `?model=${encodeURIComponent(chosen)}`;
  const mine = (source = new EventSource(`/live/events${query}`));
  mine.addEventListener("page", (event) => show(JSON.parse(event.data)));
  mine.addEventListener("error", () => {
    if (mine !== source) return;
    lost(true);
    if (mine.readyState === EventSource.CLOSED) setTimeout(connect, RETRY);
  });
}

function lost(is) {
  if (is === document.body.classList.contains("lost")) return;
  document.body.classList.toggle("lost", is);
  byId("lost").hidden = !is;
  const now = new Date().toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  write(byId("lost"), is ? `Connection lost at ${now}; trying again. Answers are as of then.` : "");
  age();
}

// A document has only the parts that changed since the last one.

function show(page) {
  lost(false);
  const before = shown;
  shown = page;
  labelled = page.age === null ? null : performance.now() - 1000 * page.age;
  write(byId("title"), page.title);
  byId("phase").dataset.phase = page.phase;
  document.title = `${page.alarm ? "(!) " : ""}${page.title} · abers live`;
  for (const name of [":chips", ":hints", ":strip"]) {
    if (name in page.parts) fill(byId(name), page.parts[name]);
  }
  if (":models" in page.parts) listed.html = page.parts[":models"];
  blocks(page);
  if (page.model !== before.model) current();
  else announce(before.answers, page.answers);
  age();
  list();
}

function blocks({ order, parts }) {
  const place = byId("blocks");
  for (const one of [...place.children]) if (!order.includes(one.id)) one.remove();
  let added = false;
  order.forEach((key, at) => {
    const fresh = key in parts ? parsed(parts[key]).firstElementChild : null;
    const old = [...place.children].find((one) => one.id === key) ?? fresh;
    if (old !== place.children[at]) place.insertBefore(old, place.children[at] ?? null);
    if (old === fresh) added = true;
    else if (fresh) morph(old, fresh);
  });
  if (added) recall();
}

function parsed(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}

function fill(element, html) {
  children(element, parsed(html));
}

// Makes an element like another, and keeps every element that both have.
function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeName !== fresh.nodeName || old.id !== fresh.id) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    old.data = fresh.data;
    return;
  }
  attributes(old, fresh);
  children(old, fresh);
}

function attributes(old, fresh) {
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}

function children(old, fresh) {
  const named = new Map([...old.children].filter((one) => one.id).map((one) => [one.id, one]));
  const wanted = [...fresh.childNodes];
  wanted.forEach((child, at) => {
    const kept = (child.id && named.get(child.id)) || old.childNodes[at];
    if (!kept) old.append(child);
    else if (child.id && kept.id !== child.id) old.insertBefore(child, kept);
    else {
      if (kept !== old.childNodes[at]) old.insertBefore(kept, old.childNodes[at]);
      morph(kept, child);
    }
  });
  while (old.childNodes.length > wanted.length) old.lastChild.remove();
}

// What is said, and what is only shown

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function announce(before, answers) {
  const changed = Object.entries(answers).filter(([name, word]) => (before[name] ?? word) !== word);
  if (changed.length === 0) return;
  write(byId("said"), changed.map(([question, word]) => `${question} Now: ${word}.`).join(" "));
  for (const card of document.querySelectorAll("#blocks .card")) {
    const question = card.firstElementChild.textContent;
    if (changed.some(([name]) => name === question)) card.classList.add("fresh");
  }
}

function age() {
  const status = document.body.classList.contains("lost") ? "not connected" : shown.status;
  if (status) write(byId("phase"), labelled === null ? status : `${status} · last label ${ago()}`);
}

function ago() {
  const seconds = Math.max(Math.floor((performance.now() - labelled) / 1000), 0);
  const [size, unit] = UNITS.find(([least]) => seconds >= least) ?? [1, "s"];
  return `${Math.floor(seconds / size)} ${unit} ago`;
}

// The list of models stays while the pointer or the focus is in it, and is searched by the server.

function list() {
  if (search.value !== "") return;
  models.hidden = listed.html === "";
  if (models.hidden || performance.now() < listed.at + LIST) return;
  if (models.matches(":hover, :focus-within")) return;
  fill(byId(":models"), listed.html);
  listed.at = performance.now();
  current();
}

function current() {
  for (const link of models.querySelectorAll("a")) {
    const is = new URL(link.href).searchParams.get("model") === shown.model;
    if (is) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

let finding = false; // there is one request at a time

async function find() {
  if (finding) return;
  finding = true;
  const text = search.value;
  try {
    const answer = await fetch(`/live/models?search=${encodeURIComponent(text)}`);
    fill(byId(":models"), text === "" ? listed.html : (await answer.json()).table);
    current();
  } catch {
    // The page says that the connection is lost.
  }
  finding = false;
  if (search.value !== text) find();
}

function choose(event) {
  const link = event.target.closest("a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  chosen = new URL(link.href).searchParams.get("model");
  history.pushState(null, "", `${new URL(link.href).search}${location.hash}`);
  connect();
}

// What is open and chosen is in the address, so that it stays after a reload.

function remember() {
  const open = [...document.querySelectorAll("#blocks details[open]")].map((one) => ["open", one.id]);
  const picked = [...document.querySelectorAll("#blocks .choice")]
    .map((one) => [one.id, [...one.querySelectorAll("input")].findIndex((button) => button.checked)])
    .filter(([, at]) => at > 0);
  history.replaceState(null, "", `${location.search}#${new URLSearchParams([...open, ...picked])}`);
}

function recall() {
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
    if (name === "open" && byId(value)) byId(value).open = true;
    const button = byId(name)?.querySelectorAll("input")[Number(value)];
    if (button) button.checked = true;
  }
}

byId("blocks").addEventListener("toggle", remember, true);
byId("blocks").addEventListener("change", remember);
byId("blocks").addEventListener("animationend", ({ target }) => target.classList.remove("fresh"));
models.addEventListener("click", choose);
search.addEventListener("input", find);
addEventListener("popstate", () => {
  const model = new URLSearchParams(location.search).get("model");
  if (model === chosen) return; // only what is open has changed
  chosen = model;
  connect();
});
setInterval(() => {
  age();
  list();
}, 1000);
connect();
