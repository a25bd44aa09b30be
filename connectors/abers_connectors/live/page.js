// Puts what the server says into its places. All words, numbers and figures come from there.
"use strict";

const place = (id) => document.getElementById(id);
const again = 3000; // milliseconds until a connection that was refused is tried again
let chosen = new URLSearchParams(location.search).get("model");
let newest = null; // what the server said last
let source = null;

function connect() {
  source?.close();
  const query = chosen === null ? "" : `?model=${encodeURIComponent(chosen)}`;
  source = new EventSource(`/live/events${query}`);
  const mine = source;
  mine.addEventListener("page", (event) => {
    newest = JSON.parse(event.data);
    if (!document.hidden) show();
  });
  mine.addEventListener("error", () => {
    if (mine !== source) return;
    phase("lost", "Connection lost, reconnecting. If this lasts, see whether the command still runs.");
    if (mine.readyState === EventSource.CLOSED) setTimeout(connect, again);
  });
}

function show() {
  if (newest === null) return;
  phase(newest.phase, newest.words);
  write(place("title"), newest.title);
  write(place("version"), newest.version);
  document.title = `${newest.alarm?.ringing ? "Alarm · " : ""}${newest.title} · abers live`;
  notice(place("alarm"), newest.alarm?.words ?? []);
  notice(place("hints"), newest.hints ?? []);
  models(newest.models ?? []);
  tiles(newest.tiles ?? []);
  write(place("empty"), newest.empty ?? "");
  place("empty").hidden = !newest.empty;
  blocks(newest.blocks ?? []);
}

function phase(name, words) {
  place("phase").dataset.phase = name;
  write(place("phase"), words);
}

// Nothing is touched that stays as it is: a screen reader would read it again.
function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function made(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function changed(element, content) {
  const now = JSON.stringify(content);
  if (element.shown === now) return false;
  element.shown = now;
  return true;
}

function notice(element, sentences) {
  if (!changed(element, sentences)) return;
  element.hidden = sentences.length === 0;
  const [first, ...more] = sentences;
  element.replaceChildren(made("strong", {}, first ?? ""), ...more.map((one) => made("p", {}, one)));
}

function models(list) {
  place("choice").hidden = list.length < 2;
  const select = place("model");
  if (changed(select, list)) {
    select.replaceChildren(...list.map((one) => made("option", { value: one.id }, one.name)));
  }
  if (document.activeElement !== select) select.value = newest.model;
}

function tiles(list) {
  const shown = place("tiles");
  if (shown.children.length !== list.length) {
    shown.replaceChildren(...list.map(() => made("div", {},
      made("dt"),
      made("dd", { class: "value" }, made("span"), made("span", { class: "unit" })),
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

function blocks(list) {
  const shown = place("blocks");
  const names = list.map((one) => one.name);
  if (changed(shown, names)) {
    const before = new Map([...shown.children].map((one) => [one.dataset.name, one]));
    shown.replaceChildren(...list.map((one) => before.get(one.name) ?? block(one)));
  }
  list.forEach((one, at) => fill(shown.children[at], one));
}

function block(one) {
  const section = made("section", { class: "card", "data-name": one.name, "aria-labelledby": `h-${one.name}` },
    made("h2", { id: `h-${one.name}` }), made("p", { class: "soft" }));
  if (one.figure) {
    const details = made("details", {}, made("summary", {}, "The same in numbers"),
      made("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${one.heading}, in numbers` }));
    details.addEventListener("toggle", () => table(details));
    section.append(made("div", { class: "figure", role: "img" }), details);
  } else {
    section.append(made("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": one.heading }));
  }
  return section;
}

function fill(section, one) {
  write(section.children[0], one.heading);
  write(section.children[1], one.sentence);
  if (one.figure) {
    const [figure, details] = [section.children[2], section.children[3]];
    figure.setAttribute("aria-label", `${one.heading}; the numbers are in the table below.`);
    if (changed(figure, one.figure)) draw(figure, one.figure);
    details.table = one.table;
    table(details);
  } else if (changed(section, one.table)) {
    section.children[2].replaceChildren(cells(one.table));
  }
}

function draw(figure, { data, layout }) {
  Plotly.react(figure, data, { ...layout, dragmode: false }, { responsive: true, displayModeBar: false });
}

function table(details) {
  if (details.open && changed(details, details.table)) details.children[1].replaceChildren(cells(details.table));
}

function cells({ columns, rows }) {
  const head = made("tr", {}, ...columns.map((one) => made("th", { scope: "col" }, one)));
  const body = rows.map(([first, ...rest]) =>
    made("tr", {}, made("th", { scope: "row" }, first), ...rest.map((one) => made("td", {}, one))));
  return made("table", {}, made("thead", {}, head), made("tbody", {}, ...body));
}

place("model").addEventListener("change", (event) => {
  chosen = event.target.value;
  history.replaceState(null, "", `?model=${encodeURIComponent(chosen)}`);
  connect();
});
document.addEventListener("visibilitychange", () => document.hidden || show());
connect();
