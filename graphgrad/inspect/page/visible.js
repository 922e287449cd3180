// What of a scene is drawn now: items (nodes, collapsed boxes, ghosts) and links between them.
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", "DejaVu Sans", sans-serif';
const MONO = 'ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace';
const FONTS = { name: `600 12px ${FONT}`, note: `11px ${FONT}`, type: `10px ${MONO}`, title: `600 12px ${FONT}` };
const NAME_LIMIT = 34;
const VISIBLE_LIMIT = 2000;
const LABEL_LIMIT = 300; // items above which only types on boundaries take room; the others show when zoomed in
const HUB = 8; // inputs and variables that more things read are drawn beside each of them
const FAN_LIMIT = 12; // what is read more often, or reads more, takes part in the layout with the first of these lines only

const ruler = document.createElement("canvas").getContext("2d");
const widths = new Map();
function widthOf(s, font) {
  const key = `${font}|${s}`;
  if (!widths.has(key)) {
    ruler.font = FONTS[font];
    widths.set(key, ruler.measureText(s).width);
  }
  return widths.get(key);
}

const even = (length) => 2 * Math.ceil(length / 2);

// The number of several nodes together: their sum where that is what an overlay is of.
function together(values, keys) {
  const found = keys.map((key) => values.of(key)).filter((value) => value !== undefined);
  const adds = values.combine === "sum" && found.length > 1 && found.every((value) => typeof value === "number");
  return adds ? found.reduce((a, b) => a + b) : values.largest(keys);
}

const countOf = ({ count, gone }) => `${plural(count, "node")}${gone ? `, ${gone.toLocaleString("en")} removed` : ""}`;

class Visible {
  constructor(scene, options) {
    this.scene = scene;
    this.options = options; // {shut, saved, derived, types, values}
    this.items = [];
    this.links = [];
    this.pairs = [];
    this.inlined = new Map(); // number -> an item on which it is written
    this.byKey = new Map();
    this.folded = []; // box -> its item, where it is collapsed
    this.hubs = new Map(); // node -> its item, where very many things read it
    this.rep = this.representatives();
    for (const n of scene.nodes) {
      if (kindOf(n) !== "constant" || !scene.readerCount[n]) this.itemOf(n, scene.at.get(n).box);
    }
    this.shown = this.seenEdges();
    this.connect();
    for (const item of this.items) {
      if (!item.hubs) continue;
      item.lines.push([middleCut(`reads ${[...item.hubs].join(", ")}`, NAME_LIMIT), "note"]);
      this.measure(item);
    }
    this.align();
    this.open = new Set();
    for (const item of this.items) for (let b = item.box; b >= 0 && !this.open.has(b); b = scene.boxes[b].parent) this.open.add(b);
    const few = this.items.length <= LABEL_LIMIT;
    for (const link of options.types ? this.links : []) {
      link.label = this.labelOf(link);
      link.spaced = !link.across && (few || link.owner >= 0);
      link.fine = !few && link.owner < 0;
    }
  }

  // For each box the outermost collapsed one around it, itself included; -1 where all are open.
  representatives() {
    const rep = [];
    this.scene.boxes.forEach((box, i) => {
      const outer = box.parent < 0 ? -1 : rep[box.parent];
      rep[i] = outer >= 0 ? outer : this.options.shut.has(box.key) ? i : -1;
    });
    return rep;
  }

  // The edges that do not lie in a collapsed box.
  seenEdges() {
    const { edges, at } = this.scene;
    const rep = (n) => this.rep[at.get(n).box];
    const found = [];
    for (let i = 0; i < edges.length; i++) {
      const shut = rep(edges.target[i]);
      if (shut < 0 || shut !== rep(edges.source[i])) found.push(edges.at(i));
    }
    return found;
  }

  // The item that shows a node in a box; null where it is switched off. copy tells several apart.
  itemOf(n, box, copy = "") {
    const { boxes } = this.scene;
    if (!this.options.derived && boxes[box].column !== 0) return null;
    const shut = this.rep[box];
    if (shut >= 0 && this.folded[shut]) return this.folded[shut];
    const key = shut >= 0 ? `b${shut}` : `n${n}${copy}`;
    let item = this.byKey.get(key);
    if (!item) {
      item = shut >= 0 ? this.boxItem(shut) : this.nodeItem(n, box);
      item.key = key;
      item.column = boxes[box].column;
      item.copy = shut < 0 && copy !== "";
      if (shut >= 0) this.folded[shut] = item;
      this.add(item);
    }
    return item;
  }

  add(item) {
    item.id = this.items.length;
    this.items.push(item);
    this.byKey.set(item.key, item);
    return this.measure(item);
  }

  measure(item) {
    const widest = Math.max(...item.lines.map(([s, font]) => widthOf(s, font)));
    const small = item.kind === "constant";
    item.w = even(widest + (item.kind === "input" || item.kind === "variable" ? 34 : small ? 22 : 24));
    item.h = even(item.lines.length * 15 + (small ? 7 : 12));
    return item;
  }

  nodeItem(n, box) {
    const { scene } = this;
    const kind = defaults.has(n) ? "ghost" : kindOf(n);
    const lines = [];
    const add = (s, font = "note") => lines.push([middleCut(s, NAME_LIMIT), font]);
    const given = table.name[n] >= 0;
    if (kind === "constant") {
      if (given) add(labelOf(n), "name");
      add(briefNumber(text(n, "brief")), "type");
    } else if (kind === "ghost") {
      add(kindOf(n) === "input" ? "dy" : labelOf(n), "name");
      if (text(n, "brief")) add(briefNumber(text(n, "brief")), "type");
    } else {
      const outer = kind === "input" && !given && scene.fed[n];
      add(outer ? text(n, "brief").replace(/^= /, "") : labelOf(n), "name");
      if (given && kind === "op" && labelOf(n).split("/").at(-1) !== text(n, "op")) add(text(n, "op"));
      if (text(n, "brief") && !outer) add(text(n, "brief"), "type");
      if (table.stamp[n] >= 0) add(`override "${text(n, "stamp")}"`);
      if (table.tensors[n] >= 0) add(`tensors ${text(n, "tensors")}`);
      const told = lineOf(n) && (isDerived(n) || table.line[n] !== scene.oneLine);
      if (told) add(lineOf(n)[0]);
      else if (originOf(n)?.call === undefined && isDerived(n)) add(`grad of ${labelOf(originOf(n).node)}`);
      if (madeBy.get(n)) add(`by ${madeBy.get(n)}`);
      if (scene.results.has(n)) add(scene.results.get(n).map((i) => `result ${i}`).join(", "));
    }
    if (scene.failed.has(n)) add("FAILED", "name");
    const value = this.valueOf([n], lines);
    return { kind, node: n, box, lines, value };
  }

  boxItem(b) {
    const box = this.scene.boxes[b];
    const told = box.operator?.map((row, i) => [middleCut(row, NAME_LIMIT), i ? "type" : "note"]);
    const lines = [[middleCut(box.title, NAME_LIMIT), "name"], ...(told ?? [[countOf(box), "note"]])];
    if (box.failed) lines.push(["FAILED inside", "name"]);
    const value = this.options.values && this.valueOf(this.scene.within(b), lines);
    return { kind: "folded", shut: b, box: box.parent, lines, value };
  }

  // The overlay's number for nodes, which becomes a line of their item too.
  valueOf(nodes, lines) {
    const { values } = this.options;
    const value = values ? together(values, nodes.map((n) => this.scene.at.get(n).key)) : undefined;
    if (value !== undefined) lines.push([values.format(value), "type"]);
    return value;
  }

  connect() {
    const { scene, options } = this;
    const joined = new Map();
    const fans = new Map();
    this.findHubs();
    const numbers = this.plainNumbers();
    for (const edge of this.shown) {
      const here = scene.at.get(edge.target);
      const b = this.itemOf(edge.target, here.box);
      if (b && numbers.has(edge.source)) {
        if (b.shut === undefined) this.writeNumber(edge, b);
        else if (isWeight(edge.source) && !scene.boxes[b.shut].operator) (b.hubs ??= new Set()).add(labelOf(edge.source));
        this.inlined.set(edge.source, b);
        continue;
      }
      const a = this.sourceOf(edge, here, b);
      if (!a || !b || a === b) continue;
      const own = b.shut !== undefined && b.column > 1 && kindOf(edge.source) === "variable"; // the parameter of an update
      if (a.hub || own) {
        b.hubs ??= new Set();
        b.hubs.add(labelOf(edge.source));
        continue;
      }
      const remote = !a.copy && (edge.kind === "residual" || (edge.kind === "saved" && a.column !== b.column));
      if (remote && !options.saved) continue;
      const folded = a.shut !== undefined || b.shut !== undefined;
      const back = edge.kind === "loop"; // it leads back up
      const key = folded ? `${a.id} ${b.id} ${remote} ${back}` : null;
      const known = folded && joined.get(key);
      if (known) {
        known.edges.push(edge);
        if (known.owner !== edge.owner) known.owner = -1;
        continue;
      }
      const near = ["saved", "residual"].includes(edge.kind) && !remote ? "data" : edge.kind;
      const kind = a.kind === "ghost" || b.kind === "ghost" ? "ghost" : near;
      const link = { a, b, edges: [edge], kind, owner: edge.owner, status: edge.status };
      const fan = Math.max(...[`${a.id} out`, `${b.id} in`].map((end) => {
        fans.set(end, (fans.get(end) ?? 0) + 1);
        return fans.get(end);
      }));
      link.across = remote || back || a.column !== b.column || fan > FAN_LIMIT;
      link.mirrored = !link.across && a.column === 1;
      this.links.push(link);
      if (folded) joined.set(key, link);
    }
  }

  // Numbers without a name, and weights, are written on what reads them, unless more is to be said.
  plainNumbers() {
    const { scene, options } = this;
    const found = new Set();
    const kept = new Set([...scene.results.keys(), ...scene.failed]);
    for (let i = 0; i < scene.edges.length && !scene.compared; i++) {
      const source = scene.edges.source[i];
      const number = kindOf(source) === "constant" && table.name[source] < 0 && typesOf(source)[0].endsWith("[]");
      if (!number && !isWeight(source)) continue;
      const { target, owner, out } = scene.edges.at(i);
      found.add(source);
      const [from, to] = [source, target].map((n) => this.rep[scene.at.get(n).box]);
      const valued = options.values?.of(scene.at.get(source).key) !== undefined;
      if (owner >= 0 || out < 0 || defaults.has(target) || valued || (number && to >= 0 && to !== from && !isDerived(source))) kept.add(source);
    }
    return new Set([...found].filter((n) => !kept.has(n)));
  }

  writeNumber({ source, operand }, item) {
    const value = briefNumber(text(source, "brief"));
    const number = operand.startsWith("arg") ? `${operand} = ${value}` : `with ${value}`;
    item.lines.splice(1, 0, [typesOf(source)[0].endsWith("[]") ? number : middleCut(weightWords(source), NAME_LIMIT), "type"]);
    this.measure(item);
  }

  // Inputs and variables that very many things read.
  findHubs() {
    const { scene, options } = this;
    const readers = new Map();
    for (const { source, target, kind } of this.shown) {
      if (!["input", "variable"].includes(kindOf(source)) || scene.fed[source] || kind === "loop") continue;
      const a = this.itemOf(source, scene.at.get(source).box);
      const b = this.itemOf(target, scene.at.get(target).box);
      if (a?.shut !== undefined || !a || !b || (kind === "saved" && !options.saved)) continue;
      if (readers.has(a)) readers.get(a).add(b);
      else readers.set(a, new Set([b]));
    }
    for (const [item, found] of readers) {
      if (found.size <= HUB) continue;
      item.hub = true;
      this.hubs.set(item.node, item);
      item.lines.push([`read by ${found.size}`, "note"]);
      this.measure(item);
    }
  }

  // Constants without a name stand beside each of their readers: long edges cost layout more.
  sourceOf({ source, target, copy }, here, reader) {
    const { scene } = this;
    const hub = this.hubs.get(source);
    if (hub) return reader?.shut === undefined ? this.itemOf(source, here.box, `@${target}`) : hub;
    const alone = scene.readerCount[source] === 1 && !copy;
    const single = kindOf(source) !== "constant" || table.name[source] >= 0 || alone;
    return single ? this.itemOf(source, scene.at.get(source).box) : this.itemOf(source, here.box, `@${target}`);
  }

  // `in 0 f32[64]`, `arg 1 f32[64]`, `3 x f32[64]`, `7 tensors`, `control`.
  labelOf({ b, edges, owner }) {
    const tensors = [...new Map(edges.filter((e) => e.out >= 0).map((e) => [`${e.source}:${e.out}`, e])).values()];
    if (!tensors.length) return "control";
    const types = new Set(tensors.map(({ source, out }) => typesOf(source)[out]));
    const [{ source, out, operand }] = tensors;
    let type = briefType([...types][0]);
    if (types.size > 1) type = plural(tensors.length, "tensor");
    else if (tensors.length > 1) type = `${tensors.length} x ${type}`;
    else if (typesOf(source).length > 1) type = `:${out} ${type}`;
    const tags = new Set(edges.map((e) => e.tag));
    const tag = tags.size === 1 && (edges.length === 1 || owner >= 0) ? [...tags][0] : "";
    return middleCut([tag, b.shut === undefined ? operand : "", type].filter(Boolean).join(" "), 40);
  }

  // Which items stand side by side.
  align() {
    const { scene } = this;
    const shown = (n) => {
      const at = scene.at.get(n);
      return at ? this.byKey.get(this.rep[at.box] >= 0 ? `b${this.rep[at.box]}` : `n${n}`) : undefined;
    };
    for (const [first, ...beside] of scene.pairs) {
      if (this.rep[scene.at.get(first)?.box] >= 0) continue;
      const a = shown(first);
      const others = beside.map(shown).filter((b) => b && b.column === 1);
      if (!a || a.column !== 0) continue;
      const plain = others.filter((b) => b.shut === undefined);
      if (plain.length) this.pairs.push([a, ...plain]);
    }
    for (const left of this.items.filter((item) => item.shut !== undefined && item.column === 0)) {
      const right = this.byKey.get(`b${scene.twins.get(left.shut)}`);
      if (right) this.pairs.push([left, right]);
    }
  }
}
