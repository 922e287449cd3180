// The data of the page. Nodes, regions and calls are named by their row.
const data = JSON.parse(document.getElementById("data").textContent);
const KINDS = ["op", "input", "variable", "constant"];
const EDGES = ["data", "input", "capture", "output", "dy", "dx", "saved", "residual", "gradient", "control", "loop"];
const COLUMNS = ["kind", "name", "index", "op", "brief", "attrs", "type", "line", "scope", "region", "origin", "stamp", "tensors"];
const table = Object.fromEntries(COLUMNS.map((name, i) => [name, data.nodes[i] ?? []]));

const defaults = new Set(data.bypass?.nodes); // rows of default gradients that rules were used instead of
const rewroteBy = new Map(Object.entries(data.rewrote).flatMap(([rule, rows]) => rows.map((n) => [n, rule])));
const madeBy = new Map(Object.entries(data.made).flatMap(([pass, rows]) => rows.map((n) => [n, pass])));

const text = (n, column) => data.strings[table[column][n]] ?? "";
const kindOf = (n) => KINDS[table.kind[n]];
const isDerived = (n) => table.origin[n] >= 0;
const typesOf = (n) => [].concat(table.type[n]).map((t) => data.types[t][0]);
const nameOf = (n) => (table.name[n] >= 0 ? text(n, "name") : `${text(n, "scope")}${text(n, "op")}_${table.index[n]}`);
const labelOf = (n) => (nameOf(n).startsWith(text(n, "scope")) ? nameOf(n).slice(text(n, "scope").length) : nameOf(n));
// A constant with a name; `weight f32[64,3]` of `conv1.weight`.
const isWeight = (n) => kindOf(n) === "constant" && table.name[n] >= 0 && !isDerived(n);
function weightWords(n) {
  if (data.file?.weights[n]) return `${data.file.weights[n]} ${typesOf(n)[0]}`;
  const name = nameOf(n).split("/").at(-1);
  const last = name.split(".").at(-1);
  return `${/^[A-Za-z_]\w*$/.test(last) ? last : name} ${typesOf(n)[0]}`;
}
const lineOf = (n) => (table.line[n] < 0 ? null : data.lines[table.line[n]]);

// Known bytes of the outputs; null where a length is unknown, or where there are none.
function bytesOf(n) {
  const each = [].concat(table.type[n]).map((t) => data.types[t][1]);
  return !each.length || each.some((b) => b < 0) ? null : each.reduce((a, b) => a + b, 0);
}

// What a node was derived from: {call, region} or {call, node} or {node}; null for the user's.
function originOf(n) {
  const code = table.origin[n];
  if (code < 0) return null;
  if (code % 2 === 0) return { node: code / 2 };
  const call = (code - 1) / 2;
  const { region, node } = data.calls[call];
  return region >= 0 ? { call, region } : { call, node };
}

// The regions around a node, innermost first.
function regionsAround(n) {
  const found = [];
  for (let r = table.region[n]; r >= 0; r = data.regions[r].parent) found.push(r);
  return found;
}

// A number with many digits, shortened; the panel has all of them.
function briefNumber(s) {
  const found = /^(-?\d+\.\d{4})\d{3,}(e[-+]?\d+)?$/.exec(s);
  return found ? `${found[1]}\u2026${found[2] ?? ""}` : s;
}

// `f32[\u2026,16,N]`: of a type that is long, long lengths are left out; the panel has them.
function briefType(type) {
  return type.length > 30 ? type.replace(/(?<=[[,])[^,\]]{15,}(?=[,\]])/g, "\u2026") : type;
}

function middleCut(s, limit) {
  if (s.length <= limit) return s;
  const head = Math.floor((limit * 2) / 3);
  return `${s.slice(0, head)}\u2026${s.slice(head + 1 - limit)}`;
}

function showBytes(count) {
  if (count === null) return "unknown";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (count >= 1000 && unit < units.length - 1) {
    count /= 1000;
    unit += 1;
  }
  return `${unit ? count.toPrecision(3) : count} ${units[unit]}`;
}

function plural(count, word) {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : word.endsWith("x") ? "es" : "s"}`;
}

function grouped(values, keyOf) {
  const found = new Map();
  for (const value of values) {
    const key = keyOf(value);
    if (found.has(key)) found.get(key).push(value);
    else found.set(key, [value]);
  }
  return found;
}

// An element with attributes and children; text only ever becomes text.
function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((c) => c !== null));
  return made;
}

function draw(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
