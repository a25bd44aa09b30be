"use strict";
const parts = [...document.querySelectorAll("[data-part]")]; // all together, and each model
const select = document.getElementById("model");

function show(id) {
  const chosen = parts.find((one) => one.id === id) ?? parts[0];
  for (const one of parts) one.hidden = one !== chosen;
  if (select) select.value = chosen.id;
  for (const place of chosen.querySelectorAll("[data-figure]")) draw(place);
}

// A figure is drawn when it is first seen: one that is hidden has no size.
function draw(place) {
  if (place.drawn) {
    Plotly.Plots.resize(place);
    return;
  }
  place.drawn = true;
  const figure = JSON.parse(document.getElementById(place.dataset.figure).textContent);
  Plotly.newPlot(place, figure.data, figure.layout, { responsive: true, displayModeBar: false });
}

const asked = () => show(location.hash.slice(1));
if (select) {
  select.parentElement.hidden = false;
  select.addEventListener("change", () => {
    history.replaceState(null, "", `#${select.value}`);
    show(select.value);
  });
  addEventListener("hashchange", asked);
}
asked();
