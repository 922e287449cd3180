/* Sliders of the gallery: of the curves that a page holds, those of the value that is asked for. */
(() => {
"use strict";
const SVG = "http://www.w3.org/2000/svg", WIDE = 400, HIGH = 200, MOST = 999;

function put(parent, kind, attributes = {}, text = "", space = "http://www.w3.org/1999/xhtml") {
  const made = parent.appendChild(document.createElementNS(space, kind));
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}

function path(curve) {
  const at = (v, i) => `${((i * WIDE) / (curve.length - 1)).toFixed(1)},${(HIGH * (1 - v / MOST)).toFixed(1)}`;
  return curve.map((v, i) => (v === null ? "" : `${i && curve[i - 1] !== null ? "L" : "M"}${at(v, i)}`)).join("");
}

function start(box) {
  const { x, y, parameters } = JSON.parse(box.querySelector("script").textContent);
  const picture = put(box, "svg", { viewBox: `-45 -12 ${WIDE + 60} ${HIGH + 30}`, role: "img" }, "", SVG);
  const zero = HIGH * (y[1] / (y[1] - y[0]));
  if (y[0] <= 0 && y[1] >= 0) put(picture, "path", { class: "zero", d: `M0,${zero}H${WIDE}` }, "", SVG);
  const lines = ["value", "slope"].map((kind) => put(picture, "path", { class: kind }, "", SVG));
  for (const [text, left, top] of [[y[1], -42, 4], [y[0], -42, HIGH + 4], [x[0], 0, HIGH + 16], [x[1], WIDE - 10, HIGH + 16]])
    put(picture, "text", { x: left, y: top }, text, SVG);
  const all = Object.entries(parameters).map(([name, told]) => {
    const label = put(box, "label", {}, name);
    const middle = told.values.indexOf(told.at);
    const slider = put(label, "input", { type: "range", min: 0, max: told.values.length - 1, step: 1, value: middle });
    const said = put(label, "output");
    const tell = () => {
      said.textContent = told.values[slider.value];
      slider.setAttribute("aria-valuetext", said.textContent);
    };
    const draw = () => {
      for (const other of all) if (other.slider !== slider) other.reset();
      tell();
      lines[0].setAttribute("d", path(told.y[told.y.length > 1 ? slider.value : 0]));
      lines[1].setAttribute("d", path(told.dx[slider.value]));
      picture.setAttribute("aria-label", `y in grey and dx in orange for ${name} ${said.textContent}`);
    };
    slider.addEventListener("input", draw);
    tell();
    return { slider, draw, reset: () => { slider.value = middle; tell(); } };
  });
  all[0].draw();
}

document.querySelectorAll(".sliders").forEach(start);
})();
