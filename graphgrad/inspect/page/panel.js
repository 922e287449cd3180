// The side panel: everything about a node, a region or a rule's call; an overview otherwise.
class Panel {
  constructor(root, go) {
    this.root = root;
    this.go = go; // {node, box, fold, home}
  }

  show(...content) {
    this.root.replaceChildren(...content);
    this.root.scrollTop = 0;
  }

  overview(scene, titled) {
    const shown = scene.present;
    const count = (wanted) => shown.filter(wanted).length.toLocaleString("en");
    const parts = [heading(titled ? `Overview: ${scene.title}` : "Overview")];
    const [parameters, bytes] = scene.parameters;
    const facts = [
      ["nodes", shown.length.toLocaleString("en")],
      ["inputs", count((n) => kindOf(n) === "input" && !scene.fed[n])],
      ["variables", count((n) => kindOf(n) === "variable")],
      ["derived", count(isDerived)],
    ];
    if (parameters) facts.push(["parameters", `${parameters.toLocaleString("en")}, ${showBytes(bytes)}`]);
    parts.push(rows(facts), ...fileParts());
    const result = ([n, which]) => make("span", {}, `${which.join(", ")}: `, this.nodeLink(n));
    parts.push(...briefList("Regions", scene.regions, (r) => this.boxLink("region", r, scene)));
    parts.push(...this.spliced(scene));
    parts.push(...briefList("Results", [...scene.results], result));
    parts.push(make("h3", {}, "Shapes and lines"), key(), make("h3", { id: "keys" }, "Keys"), keys());
    this.show(...parts);
  }

  // Rules that were spliced in, those of one name together.
  spliced(scene) {
    const byName = new Map();
    for (const c of scene.calls) byName.set(data.calls[c].name, [...(byName.get(data.calls[c].name) ?? []), c]);
    const link = (c) => this.boxLink("rule", c, scene);
    return briefList("Spliced rules", [...byName], ([name, calls]) => {
      if (calls.length <= 2) return make("span", {}, ...calls.flatMap((c, i) => (i ? [make("br"), link(c)] : [link(c)])));
      const all = make("details", { class: "rest" }, make("summary", {}, `${middleCut(name, LONG)} x ${calls.length.toLocaleString("en")}`));
      all.addEventListener("toggle", () => all.append(list(calls.slice(0, 200).map(link), calls.length)), { once: true });
      return all;
    });
  }

  node(n, scene, overlays) {
    const at = scene.at.get(n);
    const line = lineOf(n);
    const about = [text(n, "op"), at && statusWords(at.status), defaults.has(n) && "default gradient, not used", scene.failed.has(n) && "failed"];
    const parts = [this.back(), heading(nameOf(n)), make("p", { class: "kind" }, about.filter(Boolean).join(" \u2013 "))];
    const facts = [];
    if (typesOf(n).length) facts.push(["type", make("code", {}, typesOf(n).join("\n"))], ["bytes", showBytes(bytesOf(n))]);
    const formula = data.strings[data.says[text(n, "op")]];
    if (formula) facts.push(["computes", make("span", { class: "formula" }, formula)]);
    facts.push(...operatorFacts(data.file?.nodes[n]));
    if (data.file?.weights[n]) facts.push(["read as", data.file.weights[n]]);
    if (line) facts.push([originOf(n) ? "line of the rule" : "built at", make("span", {}, line[0], line[1] ? make("code", { class: "source" }, line[1]) : null)]);
    if (text(n, "attrs")) facts.push(["attributes", make("code", {}, text(n, "attrs"))]);
    if (text(n, "scope")) facts.push(["scope", cut(text(n, "scope"))]);
    if (table.stamp[n] >= 0) facts.push(["override", `"${middleCut(text(n, "stamp"), LONG)}", put on it by an op-type map`]);
    if (table.tensors[n] >= 0) facts.push(["tensors", `in the site ${middleCut(text(n, "tensors"), LONG)}`]);
    for (const r of regionsAround(n)) facts.push(["region", make("span", {}, this.boxLink("region", r, scene), ruleLine(data.regions[r]))]);
    facts.push(["origin", this.origin(n, scene)]);
    if (madeBy.has(n)) facts.push(["made by", madeBy.get(n) ? `the pass "${madeBy.get(n)}"` : "an optimisation pass"]);
    if (rewroteBy.has(n)) facts.push(["rewrite rule", make("span", { class: "formula" }, rewroteBy.get(n))]);
    for (const overlay of overlays) {
      const values = at && overlay.values.get(at.key);
      if (values) facts.push([overlay.name, values.map(([out, v]) => (out < 0 || values.length === 1 ? overlay.format(v) : `:${out} ${overlay.format(v)}`)).join(", ")]);
    }
    parts.push(rows(facts));
    parts.push(...this.edges("Reads", scene.reads.get(n), "source"), ...this.edges("Read by", scene.readers.get(n), "target"));
    const derived = (scene.derivedFrom.get(n) ?? []).filter((m) => !defaults.has(m));
    if (derived.length) parts.push(make("h3", {}, "Derived from it"), this.nodes(derived));
    const instead = (scene.derivedFrom.get(n) ?? []).filter((m) => defaults.has(m));
    if (instead.length) parts.push(make("h3", {}, "Its default gradient, not used"), this.nodes(instead));
    for (const r of isDerived(n) ? [] : regionsAround(n)) {
      const built = (scene.builtFor.get(r) ?? []).filter((m) => !defaults.has(m));
      if (built.length) parts.push(make("h3", {}, `Gradient by "${middleCut(data.regions[r].name, LONG)}"`), this.nodes(built));
    }
    this.show(...parts);
  }

  origin(n, scene) {
    const origin = originOf(n);
    if (!origin && defaults.has(n)) return "stands for the gradient that comes in";
    if (!origin && scene.failed.has(n) && !typesOf(n).length) return "could not be built";
    if (!origin) return madeBy.has(n) ? "of what the user built" : "built by the user";
    if (origin.call === undefined) return make("span", {}, "derivative of ", this.nodeLink(origin.node, scene), sourceOf(origin.node));
    const call = data.calls[origin.call];
    return make("span", {}, this.boxLink("rule", origin.call, scene), ruleLine(call));
  }

  box(b, scene, shut) {
    const box = scene.boxes[b];
    const fold = make("button", { type: "button", id: "fold", onclick: () => this.go.fold(b) }, shut ? "Expand" : "Collapse");
    const parts = [this.back(), heading(box.title), fold];
    const facts = [["nodes", box.count.toLocaleString("en")]];
    if (box.gone) facts.push(["removed", box.gone.toLocaleString("en")]);
    if (box.kind === "region") parts.push(rows([...facts, ...this.region(box.what, scene)]), ...this.regionLists(box.what, scene));
    else if (box.kind === "rule") parts.push(rows([...facts, ...this.call(box.what, scene)]), make("h3", {}, "Built"), this.nodes(box.nodes));
    else parts.push(rows([...facts, ...operatorFacts(box.file)]));
    this.show(...parts);
  }

  region(r, scene) {
    const region = data.regions[r];
    const facts = [["rule", make("span", {}, cut(`"${region.name}"`), ruleLine(region))]];
    facts.push(...ruleText(region), ...formulasOf(scene.calls.filter((c) => data.calls[c].region === r)));
    if (region.contract) facts.push(["declared", region.contract]);
    if (region.line >= 0) facts.push(["opened at", position(region.line)]);
    if (region.attrs) facts.push(["attributes", make("code", {}, region.attrs)]);
    return facts;
  }

  regionLists(r, scene) {
    const region = data.regions[r];
    const parts = [];
    for (const side of ["inputs", "outputs"]) {
      if (region[side].length) parts.push(make("h3", {}, `${side[0].toUpperCase()}${side.slice(1)}`), this.nodes(region[side].map(([n]) => n)));
    }
    parts.push(make("h3", {}, "Inside"), this.nodes(scene.members.get(r) ?? []));
    const calls = scene.calls.filter((c) => data.calls[c].region === r);
    if (calls.length) parts.push(make("h3", {}, "Spliced for it"), list(calls.map((c) => this.boxLink("rule", c, scene))));
    return parts;
  }

  call(c, scene) {
    const call = data.calls[c];
    const facts = [["rule", make("span", {}, cut(`"${call.name}"`), ruleLine(call))]];
    facts.push(...ruleText(call), ...formulasOf([c]));
    if (call.contract) facts.push(["declared", call.contract]);
    facts.push(["for", call.region >= 0 ? this.boxLink("region", call.region, scene) : this.nodeLink(call.node)]);
    return facts;
  }

  edges(title, edges, end) {
    if (!edges?.length) return [];
    const found = edges.slice(0, 200).map((edge) => {
      const types = typesOf(edge.source);
      const about = edge.out < 0 ? "control" : `${[edge.tag, edge.operand].filter(Boolean).map((s) => `${s}, `).join("")}${types.length > 1 ? `:${edge.out} ` : ""}${types[edge.out]}`;
      return make("span", {}, this.nodeLink(edge[end]), make("small", {}, ` ${middleCut(about, LONG)}`));
    });
    return [make("h3", {}, title), list(found, edges.length)];
  }

  nodes(all) {
    return list(all.slice(0, 200).map((n) => make("span", {}, this.nodeLink(n), make("small", {}, ` ${text(n, "op")}`))), all.length);
  }

  nodeLink(n) {
    return make("button", { type: "button", class: "link", "data-node": n, title: titleOf(nameOf(n)), onclick: () => this.go.node(n) }, middleCut(nameOf(n), LONG));
  }

  boxLink(kind, what, scene) {
    const { title } = (kind === "region" ? data.regions : data.calls)[what];
    const b = scene.boxOf.get(`${kind} ${what}`);
    if (b === undefined) return cut(title);
    const order = scene.boxes[b].column;
    const mark = make("i", { class: `mark ${kind} ${scene.colourOf(scene.boxes[b].owner)}`, "aria-hidden": "true" });
    return make("button", { type: "button", class: "link", title: titleOf(title), onclick: () => this.go.box(b) }, mark, middleCut(title, LONG), order > 1 ? make("small", {}, ` in ${scene.boxes.find((box) => box.kind === "column" && box.what === order).title}`) : null);
  }

  back() {
    return make("button", { type: "button", class: "link back", onclick: () => this.go.home() }, "\u2190 Overview");
  }
}

// What the file says of its model.
function fileParts() {
  if (!data.file) return [];
  const { rows: facts, metadata, entries } = data.file;
  const parts = [make("h3", {}, "Model"), rows(facts.map(([name, said]) => [name, cut(said)]))];
  if (entries) {
    const more = entries > metadata.length ? [["\u2026", `and ${(entries - metadata.length).toLocaleString("en")} more`]] : [];
    const all = rows([...metadata.map(([name, said]) => [cut(name), cut(said)]), ...more]);
    parts.push(make("details", { class: "rest" }, make("summary", {}, `metadata: ${plural(entries, "entry").replace("entrys", "entries")}`), all));
  }
  return parts;
}

// The operator of the file of which a node or a box was built.
function operatorFacts(operator) {
  if (operator === undefined) return [];
  const [type, attributes, says] = data.file.operators[operator];
  const facts = [[`${data.file.format} operator`, make("code", {}, type)]];
  if (says) facts.push(["says", make("span", { class: "formula" }, says)]);
  if (attributes) facts.push(["its attributes", make("code", {}, attributes)]);
  return facts;
}

const BRIEF = 6; // what the overview lists of regions, rules and results before one asks for more

// Long names are cut; what they are in full is behind a click, or shows when they are pointed at.
const LONG = 80;
const titleOf = (s) => (s.length > LONG ? s : null);

function cut(s) {
  if (s.length <= LONG) return s;
  return make("details", {}, make("summary", {}, middleCut(s, LONG)), make("code", {}, s));
}

function heading(s) {
  const name = make("h2", {}, middleCut(s, LONG));
  const all = `all ${s.length.toLocaleString("en")} characters`;
  return s.length <= LONG ? name : make("div", {}, name, make("details", {}, make("summary", {}, all), make("code", {}, s)));
}

function rows(facts) {
  return make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

// The first of many; the others on request.
function briefList(title, all, show) {
  if (!all.length) return [];
  const head = make("h3", {}, title);
  if (all.length <= BRIEF + 2) return [head, list(all.map(show))];
  const count = all.length - BRIEF;
  const rest = make("details", { class: "rest" }, make("summary", {}, `${count.toLocaleString("en")} more`));
  rest.addEventListener("toggle", () => rest.append(list(all.slice(BRIEF, BRIEF + 200).map(show), count)), { once: true });
  return [head, list(all.slice(0, BRIEF).map(show)), rest];
}

function list(items, total = items.length) {
  const more = total > items.length ? [make("li", { class: "more" }, `and ${(total - items.length).toLocaleString("en")} more`)] : [];
  return make("ul", {}, ...items.map((item) => make("li", {}, item)), ...more);
}

function position(line) {
  const [where, source] = data.lines[line];
  return make("span", {}, where, source ? make("code", { class: "source" }, source) : null);
}

const sourceOf = (n) => (lineOf(n) ? make("small", {}, ` (${lineOf(n)[0]})`) : null);

function ruleLine({ rule, builtin }) {
  if (builtin) return make("small", {}, " own gradient of the op type");
  return rule < 0 ? null : make("small", {}, " registered at ", position(rule));
}

// What a rule says of itself, its formula first of all, and its code.
function ruleText({ says, code }) {
  const facts = [];
  if (data.strings[says]) facts.push(["says", make("span", { class: "formula" }, data.strings[says])]);
  if (data.strings[code]) facts.push(["code", make("details", { class: "code" }, make("summary", {}, "show the rule's source"), make("code", { class: "source" }, data.strings[code]))]);
  return facts;
}

// What calls of a rule built, on request: as mathematics, and as text to copy.
function formulasOf(calls) {
  const all = [...new Set(calls.map((c) => data.calls[c].formula).filter((formula) => formula >= 0))];
  if (!all.length) return [];
  const each = all.slice(0, 20).flatMap((formula) => [mathOf(formula), make("code", { class: "source" }, data.strings[formula])]);
  return [["built", make("details", { class: "built" }, make("summary", {}, "show as a formula"), ...each)]];
}

// The lines of a formula, each called what it is as text; a long one scrolls.
function mathOf(formula) {
  const lines = data.math[formula].map(([said, element]) => {
    const math = mathElement(["math", element]);
    math.setAttribute("display", "block");
    math.setAttribute("aria-label", said);
    return math;
  });
  return make("div", { class: "math", tabindex: 0, role: "group", "aria-label": "Formula" }, ...lines);
}

function mathElement([tag, ...children]) {
  const made = document.createElementNS("http://www.w3.org/1998/Math/MathML", tag);
  made.append(...children.map((child) => (typeof child === "string" ? child : mathElement(child))));
  return made;
}

// What shapes and lines mean, drawn as in the picture.
function key() {
  const item = (name, kind, more = "") => [
    draw("g", { class: `item ${kind} column0 ${more}`, transform: "translate(4 4)" }, ...shapeOf({ kind }, 40, 20)),
    name,
  ];
  const line = (name, kind, more = "") => {
    const group = draw("g", { class: `link ${kind} ${more}` });
    group.append(draw("path", { class: "line", d: "M2 14H38" }), draw("path", { class: "tip", d: tipOf(kind, [38, 14], [46, 14]) }));
    return [group, name];
  };
  const all = [
    item("op", "op"), item("input", "input"), item("variable", "variable"), item("constant", "constant"),
    item("collapsed box", "folded"), item("marked by an op-type map", "op", "marked"), item("result", "op", "result"),
    line("tensor", "data"), line("into or out of a region or rule", "input", "crossing own0"),
    line("captured by a region", "capture", "crossing own0"), line("saved value", "saved"),
    line("the inside of a region", "residual"), line("runs before", "control"), line("on to the next run", "loop"),
  ];
  if (data.frames.length > 1) {
    for (const status of ["added", "removed", "changed", "only"]) all.push(item(status === "only" ? "only in this pane" : status, "op", status));
  }
  return make("ul", { class: "key" }, ...all.map(([mark, name]) => {
    const svg = draw("svg", { width: 50, height: 28, "aria-hidden": "true" }, mark);
    return make("li", {}, svg, name);
  }));
}

function keys() {
  const all = [
    ["/", "search"], ["Enter n N", "to the next found, or the one before"], ["arrows", "from node to node; move where none is chosen"],
    ["Enter", "details, or open a collapsed box"], ["c", "collapse the box around"], ["g", "to the gradient, or back"],
    ["+ \u2212 0", "zoom, fit"], ["s b d y", "saved, bypassed, derived, types"], ["[ ]", "step back, on"], ["p o", "side by side; to the other pane"], ["?", "these keys"], ["Esc", "let go"],
  ];
  return make("dl", { class: "keys" }, ...all.flatMap(([k, what]) => [make("dt", {}, make("kbd", {}, k)), make("dd", {}, what)]));
}
