// Overlays: one number a node as a colour, with its scale; and the theme.
const RAMP = ["#fcfdbf", "#fec287", "#fb8761", "#de4968", "#b5367a", "#812581", "#51127c", "#2a115c"];
const SPLIT = ["#2166ac", "#67a9cf", "#d1e5f0", "#f7f7f7", "#fddbc7", "#ef8a62", "#b2182b"];
const ODD = "#e6d200";
const ZERO = "#dde1e6"; // where colours follow the logarithm: zero is on no such scale

class Overlay {
  constructor(name, rows, format = number) {
    this.name = name;
    this.format = format;
    this.values = new Map(); // key -> [[output, number or text]]
    rows[0].forEach((key, i) => {
      const found = this.values.get(key) ?? [];
      found.push([rows[1][i], rows[2][i]]);
      this.values.set(key, found);
    });
    const numbers = [...this.values.values()].map((v) => v[0][1]).filter((v) => typeof v === "number");
    this.low = numbers.reduce((a, b) => Math.min(a, b), Infinity);
    this.high = numbers.reduce((a, b) => Math.max(a, b), -Infinity);
    this.split = this.low < 0 && this.high > 0;
    const least = numbers.reduce((a, b) => (b > 0 ? Math.min(a, b) : a), Infinity);
    this.floor = least;
    this.log = this.low >= 0 && this.high > 1000 * least;
  }

  of(key) {
    return this.values.get(key)?.[0][1];
  }

  // Of several the one of the largest magnitude, what is no number before all.
  largest(keys) {
    let best;
    for (const key of keys) {
      const value = this.of(key);
      if (value === undefined) continue;
      if (typeof value !== "number") return value;
      if (best === undefined || Math.abs(value) > Math.abs(best)) best = value;
    }
    return best;
  }

  // Where a number stands on the scale, from 0 to 1.
  place(value) {
    if (this.split) return 0.5 + value / (2 * Math.max(-this.low, this.high));
    if (this.log) return value <= 0 ? 0 : Math.log(value / this.floor) / Math.log(this.high / this.floor || 1);
    return this.high > this.low ? (value - this.low) / (this.high - this.low) : 0.5;
  }

  colour(value) {
    if (typeof value !== "number") return ODD;
    if (this.log && value === 0) return ZERO;
    return mixed(this.split ? SPLIT : RAMP, this.place(value));
  }

  paint(picture) {
    for (const item of picture.visible.items) {
      const { value } = item;
      if (value === undefined || value === null) continue;
      const colour = this.colour(value);
      const group = picture.nodes.get(item.key);
      group.classList.add("valued");
      if (typeof value !== "number") group.classList.add("odd");
      group.style.setProperty("--fill", colour);
      group.style.setProperty("--ink", luminance(colour) > EVEN ? "#000000" : "#ffffff");
    }
  }

  legend() {
    const most = Math.max(-this.low, this.high);
    const ends = this.split ? [-most, most] : [this.log ? this.floor : this.low, this.high];
    const [left, right] = ends.map((end) => this.format(end));
    const notes = [this.unit, this.log && "log scale"].filter(Boolean);
    const rows = [make("b", {}, notes.length ? `${this.name} (${notes.join(", ")})` : this.name)];
    if (ends[0] <= ends[1]) {
      const bar = make("div", { class: "ramp", role: "img", "aria-label": `from ${left} to ${right}` });
      bar.style.background = `linear-gradient(90deg, ${(this.split ? SPLIT : RAMP).join(", ")})`;
      rows.push(make("div", { class: "ends" }, make("span", {}, left), bar, make("span", {}, right)));
    }
    if (this.log && this.low === 0) rows.push(make("div", { class: "zero-note" }, "zero"));
    const odd = [...this.values.values()].filter((v) => typeof v[0][1] !== "number").length;
    rows.push(make("div", { class: "none-note" }, "no number"));
    if (odd) rows.push(make("div", { class: "odd-note" }, `${plural(odd, "node")} with NaN or infinity`));
    return rows;
  }
}

// Bytes that each node's outputs take, where all lengths are known.
const BYTES = "bytes of outputs";
function bytesOverlay() {
  const keys = [];
  const sizes = [];
  for (const frame of data.frames) {
    frame.nodes.forEach((n, i) => {
      const size = bytesOf(n);
      if (size !== null && kindOf(n) !== "constant") {
        keys.push(keyAt(frame, i));
        sizes.push(size);
      }
    });
  }
  return new Overlay(BYTES, [keys, keys.map(() => -1), sizes], showBytes);
}

function mixed(stops, place) {
  const at = Math.min(0.9999, Math.max(0, place)) * (stops.length - 1);
  const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  const [a, b] = [channels(stops[Math.floor(at)]), channels(stops[Math.floor(at) + 1])];
  const share = at - Math.floor(at);
  return `#${a.map((v, i) => Math.round(v + (b[i] - v) * share).toString(16).padStart(2, "0")).join("")}`;
}

// How light a colour is; on EVEN black and white are equally easy to read (WCAG 2.2, 1.4.3).
const EVEN = 0.179;
function luminance(hex) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function number(value) {
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return value.toLocaleString("en");
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(2) : value.toPrecision(4).replace(/\.?0+$/, "");
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
}
