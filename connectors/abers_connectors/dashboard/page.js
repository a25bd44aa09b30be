// Draws the figures of a page, and fills the live page with the documents of its server. All text,
// numbers and figures come from the server.
"use strict";

const byId = (id) => document.getElementById(id);
const select = byId("model");
const search = byId("search");
const LONG = 10; // rows of a list of many models

function draw(figure, { data, layout }, more = {}) {
  Plotly.react(figure, data, { ...layout, ...more }, { responsive: true, displayModeBar: false });
}

// A report: the page has all models, and shows one at a time.

function report() {
  const parts = [...document.querySelectorAll("[data-part]")];
  const show = () => {
    const chosen = parts.find((one) => one.id === location.hash.slice(1)) ?? parts[0];
    for (const one of parts) one.hidden = one !== chosen;
    select.value = chosen.id;
    for (const figure of chosen.querySelectorAll(".figure")) {
      if (figure.data) Plotly.Plots.resize(figure); // while it was hidden it had no size
      else draw(figure, JSON.parse(figure.nextElementSibling.textContent));
    }
  };
  byId("choice").hidden = parts.length < 2;
  const all = [...select.options];
  long(byId("listed").textContent !== "");
  search.addEventListener("input", () => {
    const part = search.value.toLowerCase();
    select.replaceChildren(...all.filter((one) => one.text.toLowerCase().includes(part)));
  });
  select.addEventListener("change", () => {
    history.replaceState(null, "", `#${select.value}`);
    show();
  });
  addEventListener("hashchange", show);
  show();
}

// The live page: each event of the server is the whole document of the model that is shown.

const RETRY = 3000; // milliseconds until a connection that was refused is tried again
let chosen = new URLSearchParams(location.search).get("model");
let newest = null; // document
let source = null; // of events

function live() {
  select.addEventListener("change", () => {
    chosen = select.value;
    history.replaceState(null, "", `?model=${encodeURIComponent(chosen)}`);
    connect();
  });
  search.addEventListener("input", find);
  document.addEventListener("visibilitychange", show);
  connect();
}

function connect() {
  source?.close();
  const query = chosen === null ? "" : `?model=${encodeURIComponent(chosen)}`;
  const mine = (source = new EventSource(`/live/events${query}`));
  mine.addEventListener("page", (event) => {
    newest = JSON.parse(event.data);
    show();
  });
  mine.addEventListener("error", () => {
    if (mine !== source) return;
    phase("lost", "Connection lost, reconnecting. If this lasts, see whether the command still runs.");
    if (mine.readyState === EventSource.CLOSED) setTimeout(connect, RETRY);
  });
}

function show() {
  if (newest === null || document.hidden) return;
  phase(newest.phase, newest.status);
  write(byId("title"), newest.title);
  write(byId("version"), newest.version);
  document.title = `${newest.alarm.length ? "Alarm · " : ""}${newest.title} · abers live`;
  notice(byId("alarm"), newest.alarm);
  notice(byId("hints"), newest.hints);
  write(byId("empty"), newest.empty ?? "");
  byId("empty").hidden = !newest.empty;
  choice(newest);
  tiles(newest.tiles);
  cards(newest.cards);
}

function phase(name, status) {
  byId("phase").dataset.phase = name;
  write(byId("phase"), status);
}

// Unchanged text is not written: a screen reader would read it again.
function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function changed(element, content) {
  const now = JSON.stringify(content);
  const before = element.shown;
  element.shown = now;
  return now !== before;
}

function made(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function notice(element, sentences) {
  if (!changed(element, sentences)) return;
  element.hidden = sentences.length === 0;
  const [first, ...more] = sentences;
  element.replaceChildren(made("strong", {}, first ?? ""), ...more.map((one) => made("p", {}, one)));
}

function choice({ models, listed, shown }) {
  byId("choice").hidden = models.length < 2;
  long(listed !== "");
  write(byId("shown"), shown);
  byId("shown").hidden = listed === "";
  if (listed !== "" && search.value !== "") find();
  else options(models, listed);
}

// Many models are a list with a field to search, few are a list that opens.
function long(many) {
  search.hidden = byId("listed").hidden = !many;
  select.size = many ? LONG : 1;
}

function options(models, listed) {
  write(byId("listed"), listed);
  if (changed(select, models)) {
    select.replaceChildren(...models.map((one) => made("option", { value: one.id }, one.name)));
  }
  if (document.activeElement !== select) select.value = newest.model;
}

// The server searches, and answers with few models; there is one request at a time.
let finding = false;

async function find() {
  if (finding) return;
  finding = true;
  const text = search.value;
  try {
    const answer = await fetch(`/live/models?search=${encodeURIComponent(text)}`);
    const { choices, listed } = await answer.json();
    options(choices, listed);
  } catch {
    // The page says that the connection is lost, and the next document asks again.
  }
  finding = false;
  if (search.value !== text) find();
}

function tiles(list) {
  const shown = byId("tiles");
  if (shown.children.length !== list.length) {
    shown.replaceChildren(...list.map(() => made("div", {},
      made("dt", {}),
      made("dd", { class: "value" }, made("span", {}), made("span", { class: "unit" })),
      made("dd", { class: "note" }))));
  }
  list.forEach((tile, at) => {
    const [name, value, note] = shown.children[at].children;
    write(name, tile.name);
    write(value.children[0], tile.value);
    write(value.children[1], tile.unit);
    write(note, tile.note);
  });
}

function cards(list) {
  const shown = byId("cards");
  if (changed(shown, list.map((one) => one.name))) {
    const before = new Map([...shown.children].map((one) => [one.dataset.name, one]));
    shown.replaceChildren(...list.map((one) => before.get(one.name) ?? card(one)));
  }
  list.forEach((one, at) => fill(shown.children[at], one));
}

function card({ name, figure }) {
  const section = byId(figure ? "figure" : "table").content.firstElementChild.cloneNode(true);
  section.dataset.name = name;
  section.querySelector("details")?.addEventListener("toggle", () => table(section));
  return section;
}

function fill(section, { heading, description, figure, table: numbers, notes }) {
  const part = (name) => section.querySelector(name);
  const before = section.ariaLabel;
  for (const one of before === heading ? [] : [section, ...section.querySelectorAll("[aria-label]")]) {
    one.ariaLabel = one.ariaLabel.replace(before, heading);
  }
  write(part("h2"), heading);
  write(part(".description"), description);
  if (figure && changed(part(".figure"), figure)) draw(part(".figure"), figure, { dragmode: false });
  if (changed(part(".notes"), notes)) part(".notes").replaceChildren(...notes.map((one) => made("p", {}, one)));
  section.numbers = numbers;
  table(section);
}

// A table that is closed is filled when it is opened.
function table(section) {
  const scroll = section.querySelector(".scroll");
  if (section.querySelector("details:not([open])") || !changed(scroll, section.numbers)) return;
  const { columns, rows } = section.numbers;
  const head = made("tr", {}, ...columns.map((one) => made("th", { scope: "col" }, one)));
  const body = rows.map(([first, ...rest]) =>
    made("tr", {}, made("th", { scope: "row" }, first), ...rest.map((one) => made("td", {}, one))));
  scroll.replaceChildren(made("table", {}, made("thead", {}, head), made("tbody", {}, ...body)));
}

byId("cards") ? live() : report();
