// The drawing: boxes below, then edges, then what is written on them, then nodes. Names come in as text alone.
class Picture {
  constructor(svg, letter) {
    this.letter = letter; // the ids of items begin with it
    this.world = svg.firstElementChild;
    this.nodes = new Map(); // item key -> group
    this.width = this.height = 1;
  }

  show(visible, { width, height, boxes }) {
    this.visible = visible;
    this.width = width;
    this.height = height;
    this.nodes.clear();
    const layers = ["boxes", "links", "words", "heads", "items"].map((name) => draw("g", { class: name }));
    const framed = [...boxes.keys()].filter((b) => visible.scene.boxes[b].kind === "column").length > 1;
    for (const b of [...boxes.keys()].sort((x, y) => x - y)) {
      if (!framed && visible.scene.boxes[b].kind === "column") continue;
      layers[0].append(this.box(b, boxes.get(b)));
      layers[3].append(this.head(b, boxes.get(b)));
    }
    visible.links.forEach((link, i) => {
      if (link.points) layers[1].append(this.link(link, i));
      if (link.label && link.at) layers[2].append(this.word(link, i));
    });
    for (const item of visible.items) layers[4].append(this.item(item));
    this.boxes = boxes;
    this.world.replaceChildren(...layers);
  }

  classesOf(b) {
    const { boxes } = this.visible.scene;
    return `${boxes[b].kind} column${boxes[b].column % 2} ${this.visible.scene.colourOf(boxes[b].owner)}`;
  }

  box(b, { x, y, w, h }) {
    const frame = draw("rect", { x, y, width: w, height: h, rx: this.visible.scene.boxes[b].kind === "column" ? 12 : 8 });
    return draw("g", { class: `box ${this.classesOf(b)}`, "data-box": b }, frame);
  }

  // Title and button of a box, above the edges.
  head(b, { x, y, w }) {
    const { title } = this.visible.scene.boxes[b];
    const words = draw("text", { x: x + 12, y: y + 19, class: "title" });
    words.textContent = shownTitle(this.visible.scene.boxes[b]);
    const left = x + w - 24;
    const fold = draw("g", { class: "fold", role: "button", tabindex: 0, "data-fold": b });
    fold.setAttribute("aria-label", `Collapse ${title}`);
    fold.append(draw("rect", { x: left, y: y + 7, width: 16, height: 16, rx: 4 }), draw("path", { d: `M${left + 4} ${y + 15}h8` }), draw("rect", { x: left - 4, y: y + 3, width: 24, height: 24, class: "reach" }));
    const full = draw("title");
    full.textContent = title;
    return draw("g", { class: this.classesOf(b), "data-box": b }, words, fold, full);
  }

  classesOfLink(link) {
    const { scene } = this.visible;
    const marked = link.kind === "data" && [link.a, link.b].some(({ node }) => table.stamp[node] >= 0);
    const colour = marked && link.owner < 0 ? (scene.compared ? "ownless" : "stamped") : scene.colourOf(link.owner);
    const crossing = colour && `crossing ${colour}`;
    return `${link.kind} ${crossing} ${link.status} ${link.fine ? "fine" : ""} ${link.across ? "" : `under${link.a.column % 2}`}`;
  }

  link(link, i) {
    const { scene } = this.visible;
    const { points, tip } = link.points;
    const d = `M${points[0]}C${points.slice(1).map((p) => p.join(" ")).join(" ")}`;
    const group = draw("g", { class: `link ${this.classesOfLink(link)}`, "data-link": i, "data-ends": `${this.letter}${link.a.id} ${this.letter}${link.b.id}` });
    group.append(draw("path", { class: "line", d }), draw("path", { class: "tip", d: tipOf(link.kind, points[points.length - 1], tip) }));
    const about = draw("title");
    about.textContent = `${describeItem(link.a, scene)} to ${describeItem(link.b, scene)} ${this.visible.labelOf(link)}`;
    group.append(about);
    return group;
  }

  // What is written on a link, above all of them.
  word(link, i) {
    const label = draw("text", { x: link.at[0], y: link.at[1] + 3.5, class: "type" });
    label.textContent = link.label;
    return draw("g", { class: `word ${this.classesOfLink(link)}`, "data-link": i }, label);
  }

  item(item) {
    const { scene } = this.visible;
    const { x, y, w, h } = item;
    const box = item.shut === undefined ? scene.boxes[item.box] : scene.boxes[item.shut];
    const status = scene.statusOf(item);
    const classes = ["item", item.kind, `column${item.column % 2}`, scene.colourOf(this.ownerOf(item))];
    if (status || scene.compared) classes.push(status || "same");
    if (scene.failedIn(item)) classes.push("failed");
    if (item.node !== undefined && (table.stamp[item.node] >= 0 || table.tensors[item.node] >= 0)) classes.push("marked");
    if (scene.results.has(item.node)) classes.push("result");
    if (item.shut !== undefined) classes.push(box.kind);
    const group = draw("g", { class: classes.join(" "), id: `${this.letter}${item.id}`, role: "img", transform: `translate(${x - w / 2} ${y - h / 2})` });
    group.setAttribute("aria-label", describeItem(item, scene));
    group.append(...shapeOf(item, w, h));
    const stack = item.kind === "folded" ? STACK : 0;
    item.lines.forEach(([s, font], i) => {
      const line = draw("text", { x: (w - stack) / 2, y: (h - stack - item.lines.length * 15) / 2 + 11 + i * 15, class: font });
      line.textContent = s;
      group.append(line);
    });
    if (item.kind === "ghost") group.append(draw("path", { class: "strike", d: `M6 ${h - 6}L${w - 6} 6` }));
    if (scene.failedIn(item)) group.append(draw("rect", { x: -4, y: -4, width: w + 8, height: h + 8, rx: 10, class: "ring" }));
    if (status) group.append(...badge(status, w));
    this.nodes.set(item.key, group);
    return group;
  }

  // The rule call that built a node, else nothing; of a collapsed box its owner.
  ownerOf(item) {
    const { scene } = this.visible;
    for (let b = item.shut ?? item.box; b >= 0; b = scene.boxes[b].parent) {
      const { kind, owner } = scene.boxes[b];
      if (kind === "rule" || (kind === "region" && b === item.shut)) return owner;
      if (item.shut !== undefined && b !== item.shut) break;
    }
    return -1;
  }
}

const STACK = 6; // how far the sheets of a collapsed box stand out, within its bounds: arrows end at these
const STATUS_SIGNS = { added: "+", removed: "\u2212", changed: "~", only: "+" };
const statusWords = (status) => (status === "only" ? "only here" : status);

function badge(status, w) {
  const sign = draw("text", { x: w - 2, y: 5, class: "sign" });
  sign.textContent = STATUS_SIGNS[status];
  return [draw("circle", { cx: w - 2, cy: 1, r: 8, class: "badge" }), sign];
}

function describeItem(item, scene) {
  if (item.shut !== undefined) {
    const { title, failed } = scene.boxes[item.shut];
    const status = scene.statusOf(item);
    return `${title}, collapsed, ${countOf(scene.boxes[item.shut])}${status ? `, ${statusWords(status)}` : ""}${failed ? ", failed inside" : ""}`;
  }
  const n = item.node;
  const { status } = scene.at.get(n);
  return `${nameOf(n)}, ${text(n, "op")}, ${typesOf(n).join(" ")}${status ? `, ${statusWords(status)}` : ""}${item.kind === "ghost" ? ", default gradient, not used" : ""}${scene.failed.has(n) ? ", failed" : ""}`;
}

function shapeOf({ kind }, w, h) {
  const rect = (x, y, rx, name = "shape") => draw("rect", { x, y, width: w - 2 * Math.max(x, 0), height: h - 2 * Math.max(y, 0), rx, class: name });
  if (kind === "input") return [rect(0, 0, h / 2)];
  if (kind === "variable") return [rect(0, 0, h / 2), rect(3, 3, (h - 6) / 2, "inner")];
  if (kind === "constant") {
    return [draw("path", { class: "shape", d: `M0 0H${w - 8}L${w} 8V${h}H0Z` }), draw("path", { class: "inner", d: `M${w - 8} 0V8H${w}` })];
  }
  if (kind === "folded") {
    const sheet = (d, name = "sheet") => draw("rect", { x: d, y: d, width: w - STACK, height: h - STACK, rx: 6, class: name });
    return [sheet(STACK), sheet(STACK / 2), sheet(0, "shape")];
  }
  return [rect(0, 0, 7)];
}

// The head of an arrow from the end of its line to its tip: its form tells captures and residuals.
function tipOf(kind, [x, y], [tx, ty]) {
  const length = Math.hypot(tx - x, ty - y) || 1;
  const [ux, uy] = [(tx - x) / length, (ty - y) / length];
  const at = (along, side) => `${(x + ux * along - uy * side).toFixed(1)} ${(y + uy * along + ux * side).toFixed(1)}`;
  if (kind === "capture") return `M${at(0, 0)}L${at(length / 2, 3)}L${at(length, 0)}L${at(length / 2, -3)}Z`;
  return `M${at(0, 3)}L${at(length, 0)}L${at(0, -3)}Z`;
}
