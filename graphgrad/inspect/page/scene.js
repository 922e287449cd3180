// A scene: the nodes, boxes and edges of one frame, or of one laid over another. Of a frame that stands
// beside another, what only it has and what changed is marked.
class Scene {
  constructor(frame, { over, beside }) {
    this.title = frame.title;
    this.nodes = []; // rows of the table
    this.at = new Map(); // row -> {box, height, column, status, key}
    this.boxes = []; // {key, parent, kind, what, title, column, owner, inner, nodes, count, failed, status}
    this.edges = new Edges();
    this.pairs = []; // [forward node, gradients beside it]
    this.beside = new Map(); // forward node -> gradients beside it that were removed
    this.results = new Map();
    this.places = new Map();
    this.shut = new Set(); // keys of the boxes that are collapsed at first
    this.twins = new Map(); // box -> its mirror image, both ways
    this.compared = Boolean(over || beside);
    if (over) this.lay(over, frame);
    else if (beside) this.mark(frame, beside);
    else this.take(frame, () => "", () => "");
    this.finish(frame);
  }

  // One frame; status(row) of "" or null (left out), edgeStatus(source, out, target) likewise.
  take(frame, status, edgeStatus) {
    const titles = new Map(frame.columns);
    const place = [];
    frame.boxes.forEach(([parent, kind, what, mark], i) => {
      place[i] = this.box(parent < 0 ? -1 : place[parent], kind, what, mark, titles);
    });
    for (const i of frame.shut) this.shut.add(this.boxes[place[i]].key);
    for (const [i, rows] of frame.operators) Object.assign(this.boxes[place[i]], { operator: rows, title: this.boxes[place[i]].what });
    for (const [i, operator] of frame.files) this.boxes[place[i]].file = operator;
    for (const [a, b] of frame.mirror) this.twins.set(place[a], place[b]).set(place[b], place[a]);
    frame.nodes.forEach((n, i) => {
      const found = status(n);
      if (found === null) return;
      const box = place[frame.box[i]];
      this.nodes.push(n);
      const column = this.boxes[box].column;
      this.at.set(n, { box, height: frame.height[i], column, status: found, key: keyAt(frame, i) });
      this.boxes[box].nodes.push(n);
    });
    this.edges.take(frame, edgeStatus);
  }

  // A frame, with what another one has not, or has otherwise.
  mark(frame, beside) {
    const [own, other] = [ledger(frame), ledger(beside)];
    this.take(frame, (n) => statusIn(n, own, other) ?? "only", (...edge) => linkIn(edge, own, other) ?? "only");
  }

  // Two frames over each other: what both have is drawn once, where the later one has it.
  lay(before, after) {
    const [old, now] = [ledger(before), ledger(after)];
    this.take(after, (n) => statusIn(n, now, old) ?? "added", (...edge) => linkIn(edge, now, old) ?? "added");
    const moved = (n) => now.rowOf.get(old.keyOf.get(n)) ?? n;
    const kept = this.edges.length;
    this.take(
      before,
      (n) => (now.rowOf.has(old.keyOf.get(n)) ? null : "removed"),
      (...edge) => (linkIn(edge, old, now) === null ? "removed" : null),
    );
    for (let i = kept; i < this.edges.length; i++) {
      this.edges.source[i] = moved(this.edges.source[i]);
      this.edges.target[i] = moved(this.edges.target[i]);
    }
    const gone = (n) => this.at.get(n)?.status === "removed";
    for (const [n, ...beside] of before.pairs) this.beside.set(moved(n), beside.filter(gone));
  }

  box(parent, kind, what, mark, titles) {
    const around = parent < 0 ? "" : this.boxes[parent].key;
    const key = `${around}/${kind}:${mark ?? JSON.stringify(what)}`;
    let found = this.places.get(key);
    if (found === undefined) {
      found = this.boxes.length;
      this.places.set(key, found);
      this.boxes.push({
        key, parent, kind, what,
        title: boxTitle(kind, what, titles),
        column: kind === "column" ? what : this.boxes[parent].column,
        owner: kind === "region" ? 2 * what : kind === "rule" ? 2 * what + 1 : -1,
        inner: [], nodes: [], count: 0, gone: 0, failed: false, status: undefined,
      });
      if (parent >= 0) this.boxes[parent].inner.push(found);
    }
    return found;
  }

  finish(frame) {
    this.failed = new Set(frame.failed);
    this.oneLine = frame.oneLine;
    this.parameters = frame.parameters;
    for (let i = this.boxes.length - 1; i >= 0; i--) {
      const box = this.boxes[i];
      for (const n of box.nodes) {
        const { status } = this.at.get(n);
        box[status === "removed" ? "gone" : "count"] += 1;
        box.status = commonStatus(box.status, status);
        box.failed ||= this.failed.has(n);
      }
      if (box.parent < 0) continue;
      const around = this.boxes[box.parent];
      if (box.kind !== "bypass") around.count += box.count; // what was not used counts nowhere else
      around.gone += box.gone;
      around.failed ||= box.failed;
      around.status = commonStatus(around.status, box.status);
    }
    this.pairs = this.compared ? frame.pairs.map((row) => [...row, ...(this.beside.get(row[0]) ?? [])]) : frame.pairs;
    const paired = new Set(this.pairs.map(([n]) => n));
    for (const [n, gone] of this.beside) if (gone.length && !paired.has(n)) this.pairs.push([n, ...gone]);
    frame.results.forEach(([n], i) => {
      this.results.set(n, [...(this.results.get(n) ?? []), i]);
    });
    this.fed = new Uint8Array(table.kind.length); // whether a node reads anything
    this.readerCount = new Uint32Array(table.kind.length);
    for (const n of this.edges.target) this.fed[n] = 1;
    for (const n of this.edges.source) this.readerCount[n] += 1;
    this.rows = data.frames.length > 1 ? new Map([...this.at].map(([n, { key }]) => [key, n])) : new Map();
    this.present = this.nodes.filter((n) => !defaults.has(n) && this.at.get(n).status !== "removed");
    const live = (kind) => new Set(this.boxes.filter((b) => b.kind === kind && b.count).map((b) => b.what)).size;
    this.counts = [plural(this.present.length, "node"), plural(live("region"), "region"), `${live("rule").toLocaleString("en")} spliced`];
    this.regions = [...new Set(this.boxes.filter((b) => b.kind === "region").map((b) => b.what))];
    this.regions.sort((a, b) => data.regions[a].index - data.regions[b].index);
    this.calls = [...new Set(this.boxes.filter((b) => b.kind === "rule").map((b) => b.what))];
    this.boxOf = new Map(); // kind and row of a region or call -> its first box
    this.boxes.forEach(({ kind, what, owner }, i) => {
      if (owner >= 0 && !this.boxOf.has(`${kind} ${what}`)) this.boxOf.set(`${kind} ${what}`, i);
    });
    this.colour = new Map(this.regions.map((r, i) => [r, i % 6]));
  }

  // --- made where somebody asks: there may be very many -----------------------------------------

  // Node -> edges in.
  get reads() {
    this.edgesIn ??= grouped(this.edges, (edge) => edge.target);
    return this.edgesIn;
  }

  // Node -> edges out.
  get readers() {
    this.edgesOut ??= grouped(this.edges, (edge) => edge.source);
    return this.edgesOut;
  }

  get origins() {
    this.byOrigin ??= this.sortedByOrigin();
    return this.byOrigin;
  }

  // Node -> what was derived from it.
  get derivedFrom() {
    return this.origins.derivedFrom;
  }

  // Region -> what its rule built.
  get builtFor() {
    return this.origins.builtFor;
  }

  // Region -> nodes inside.
  get members() {
    return this.origins.members;
  }

  sortedByOrigin() {
    const found = { derivedFrom: new Map(), builtFor: new Map(), members: new Map() };
    const add = (map, key, value) => (map.has(key) ? map.get(key).push(value) : map.set(key, [value]));
    for (const n of this.nodes) {
      const origin = originOf(n);
      if (!origin) for (const r of regionsAround(n)) add(found.members, r, n);
      else if (origin.region === undefined) add(found.derivedFrom, origin.node, n);
      else add(found.builtFor, origin.region, n);
    }
    return found;
  }

  // --- of a node or box -------------------------------------------------------------------------

  // What a comparison says of an item: of a collapsed box, that of its nodes if they agree.
  statusOf({ node, shut }) {
    if (shut === undefined) return this.at.get(node)?.status ?? "";
    return this.boxes[shut].status ?? "changed";
  }

  // The row that this scene has of a node of any scene.
  rowOf(n) {
    return this.at.has(n) ? n : this.rows.get(keysOfRows.get(n));
  }

  failedIn({ node, shut }) {
    return shut === undefined ? this.failed.has(node) : this.boxes[shut].failed;
  }

  // All nodes in a box, at any depth.
  within(b) {
    const found = [];
    const stack = [b];
    while (stack.length) {
      const { nodes, inner } = this.boxes[stack.pop()];
      for (const n of nodes) found.push(n);
      stack.push(...inner);
    }
    return found;
  }

  // The class that gives the colour of a region, or of the rule called for it. In a comparison all
  // have the same: there a colour says what changed.
  colourOf(owner) {
    if (owner < 0) return "";
    if (this.compared) return "ownless";
    const region = owner % 2 ? data.calls[(owner - 1) / 2].region : owner / 2;
    return region < 0 ? "stamped" : `own${this.colour.get(region) ?? 0}`;
  }

  // Everything that belongs together with a node: forward node, gradient nodes, the rule's call.
  related(n) {
    const found = new Set([n]);
    const take = (nodes) => (nodes ?? []).forEach((m) => found.add(m));
    const origin = originOf(n);
    if (!origin) {
      take(this.derivedFrom.get(n));
      for (const r of regionsAround(n)) take(this.builtFor.get(r));
    } else if (origin.region !== undefined) {
      take(this.members.get(origin.region));
      take(this.builtFor.get(origin.region));
    } else {
      found.add(origin.node);
      take(this.derivedFrom.get(origin.node));
    }
    take(this.derivedFrom.get(n));
    return found;
  }
}

const keyAt = (frame, i) => (frame.key.length ? frame.key[i] : frame.nodes[i]);
const keysOfRows = new Map(); // of all frames, where there are several
if (data.frames.length > 1) for (const frame of data.frames) frame.nodes.forEach((n, i) => keysOfRows.set(n, keyAt(frame, i)));

// What tells the nodes and edges of a frame from those of another.
function ledger(frame) {
  const keyOf = new Map(frame.nodes.map((n, i) => [n, keyAt(frame, i)]));
  const found = { keyOf, rowOf: new Map(), reads: new Map(), links: new Set() };
  for (const [n, key] of keyOf) found.rowOf.set(key, n);
  const [sources, outs, targets] = frame.edges;
  sources.forEach((source, i) => {
    const target = targets[i];
    found.links.add(link(source, outs[i], target, found));
    found.reads.set(target, `${found.reads.get(target) ?? ""} ${keyOf.get(source)}:${outs[i]}`);
  });
  return found;
}

// "" or "changed" of a node of one frame that another has too; null of the others.
function statusIn(n, own, other) {
  const there = other.rowOf.get(own.keyOf.get(n));
  if (there === undefined) return null;
  return there === n || sameNode(there, n, other, own) ? "" : "changed";
}

const linkIn = (edge, own, other) => (other.links.has(link(...edge, own)) ? "" : null);
const link = (source, out, target, own) => `${own.keyOf.get(source)}:${out} ${own.keyOf.get(target)}`;

// What two things have in common; undefined: nothing is known yet.
const commonStatus = (a, b) => (a === undefined || a === b ? b : b === undefined ? a : "changed");

function sameNode(a, b, old, now) {
  const same = (column) => JSON.stringify(table[column][a]) === JSON.stringify(table[column][b]);
  return same("op") && same("attrs") && same("type") && old.reads.get(a) === now.reads.get(b);
}

function boxTitle(kind, what, titles) {
  if (kind === "column") return titles.get(what);
  if (kind === "scope") return `${what}/`;
  if (kind === "body" || kind === "bypass" || kind === "part") return what;
  return (kind === "region" ? data.regions : data.calls)[what].title;
}
