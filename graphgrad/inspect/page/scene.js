// A scene: the nodes, boxes and edges of one frame, or of one laid over another. Of a frame that stands
// beside another, what only it has and what changed is marked.
class Scene {
  constructor(frame, { over, beside }) {
    this.title = frame.title;
    this.nodes = []; // rows of the table
    this.at = new Map(); // row -> {box, height, column, status, key}
    this.boxes = []; // {key, parent, kind, what, title, column, owner, inner, nodes, count, failed, statuses}
    this.edges = []; // {source, out, target, kind, tag, owner, copy, status}
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

  // One frame; status(row) of "" or null (left out), edgeStatus(edge) likewise.
  take(frame, status, edgeStatus) {
    const boxes = frame.boxes.map((box) => box);
    const titles = new Map(frame.columns);
    const place = [];
    boxes.forEach(([parent, kind, what, mark], i) => {
      place[i] = this.box(parent < 0 ? -1 : place[parent], kind, what, mark, titles);
    });
    for (const i of frame.shut) this.shut.add(this.boxes[place[i]].key);
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
    for (const edge of edgesOf(frame)) {
      const found = edgeStatus(edge);
      if (found === null) continue;
      edge.status = found;
      this.edges.push(edge);
    }
  }

  // A frame, with what another one has not, or has otherwise.
  mark(frame, beside) {
    const [own, other] = [ledger(frame), ledger(beside)];
    this.take(frame, (n) => statusIn(n, own, other) ?? "only", (e) => linkIn(e, own, other) ?? "only");
  }

  // Two frames over each other: what both have is drawn once, where the later one has it.
  lay(before, after) {
    const [old, now] = [ledger(before), ledger(after)];
    this.take(after, (n) => statusIn(n, now, old) ?? "added", (e) => linkIn(e, now, old) ?? "added");
    const moved = (n) => now.rowOf.get(old.keyOf.get(n)) ?? n;
    const kept = this.edges.length;
    this.take(
      before,
      (n) => (now.rowOf.has(old.keyOf.get(n)) ? null : "removed"),
      (e) => (linkIn(e, old, now) === null ? "removed" : null),
    );
    for (const edge of this.edges.slice(kept)) {
      edge.source = moved(edge.source);
      edge.target = moved(edge.target);
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
        inner: [], nodes: [], count: 0, gone: 0, failed: false, statuses: new Set(),
      });
      if (parent >= 0) this.boxes[parent].inner.push(found);
    }
    return found;
  }

  finish(frame) {
    this.failed = new Set(frame.failed);
    for (let i = this.boxes.length - 1; i >= 0; i--) {
      const box = this.boxes[i];
      for (const n of box.nodes) box[this.at.get(n).status === "removed" ? "gone" : "count"] += 1;
      box.failed ||= box.nodes.some((n) => this.failed.has(n));
      for (const n of box.nodes) box.statuses.add(this.at.get(n).status);
      if (box.parent < 0) continue;
      const around = this.boxes[box.parent];
      if (box.kind !== "bypass") around.count += box.count; // what was not used counts nowhere else
      around.gone += box.gone;
      around.failed ||= box.failed;
      box.statuses.forEach((status) => around.statuses.add(status));
    }
    this.pairs = frame.pairs.map(([n, ...beside]) => [n, ...beside, ...(this.beside.get(n) ?? [])]);
    const paired = new Set(this.pairs.map(([n]) => n));
    for (const [n, gone] of this.beside) if (gone.length && !paired.has(n)) this.pairs.push([n, ...gone]);
    frame.results.forEach(([n], i) => {
      this.results.set(n, [...(this.results.get(n) ?? []), i]);
    });
    this.constants = new Set();
    this.derivedFrom = new Map(); // node -> what was derived from it
    this.builtFor = new Map(); // region -> what its rule built
    this.members = new Map(); // region -> nodes inside
    this.reads = new Map(); // node -> edges in
    this.readers = new Map(); // node -> edges out
    const add = (map, key, value) => (map.has(key) ? map.get(key).push(value) : map.set(key, [value]));
    for (const n of this.nodes) {
      const origin = originOf(n);
      if (origin) add(origin.region === undefined ? this.derivedFrom : this.builtFor, origin.region ?? origin.node, n);
      for (const r of regionsAround(n)) if (!origin) add(this.members, r, n);
    }
    for (const edge of this.edges) {
      add(this.reads, edge.target, edge);
      add(this.readers, edge.source, edge);
    }
    this.rows = data.frames.length > 1 ? new Map([...this.at].map(([n, { key }]) => [key, n])) : new Map();
    this.present = this.nodes.filter((n) => !defaults.has(n) && this.at.get(n).status !== "removed");
    const live = (kind) => new Set(this.boxes.filter((b) => b.kind === kind && b.count).map((b) => b.what)).size;
    this.counts = [plural(this.present.length, "node"), plural(live("region"), "region"), `${live("rule").toLocaleString("en")} spliced`];
    this.regions = [...new Set(this.boxes.filter((b) => b.kind === "region").map((b) => b.what))];
    this.regions.sort((a, b) => data.regions[a].index - data.regions[b].index);
    this.calls = [...new Set(this.boxes.filter((b) => b.kind === "rule").map((b) => b.what))];
    this.boxOf = new Map(); // kind and row of a region or call -> its first box
    this.boxes.forEach(({ kind, what }, i) => {
      if (!this.boxOf.has(`${kind} ${what}`)) this.boxOf.set(`${kind} ${what}`, i);
    });
    this.colour = new Map(this.regions.map((r, i) => [r, i % 6]));
  }

  // What a comparison says of an item: of a collapsed box, that of its nodes if they agree.
  statusOf({ node, shut }) {
    if (shut === undefined) return this.at.get(node)?.status ?? "";
    const { statuses } = this.boxes[shut];
    return statuses.size === 1 ? [...statuses][0] : "changed";
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

function* edgesOf(frame) {
  const [source, out, target, kind, tag, owner, operand, copies] = frame.edges;
  const copied = new Set(copies);
  for (let i = 0; i < source.length; i++) {
    yield {
      source: source[i], out: out[i], target: target[i], kind: EDGES[kind[i]],
      tag: data.strings[tag[i]], owner: owner[i], operand: data.strings[operand[i]], copy: copied.has(i),
    };
  }
}

// What tells the nodes and edges of a frame from those of another.
function ledger(frame) {
  const keyOf = new Map(frame.nodes.map((n, i) => [n, keyAt(frame, i)]));
  const found = { keyOf, rowOf: new Map(), reads: new Map(), links: new Set() };
  for (const [n, key] of keyOf) found.rowOf.set(key, n);
  for (const edge of edgesOf(frame)) {
    found.links.add(link(edge, found));
    found.reads.set(edge.target, `${found.reads.get(edge.target) ?? ""} ${keyOf.get(edge.source)}:${edge.out}`);
  }
  return found;
}

// "" or "changed" of a node of one frame that another has too; null of the others.
function statusIn(n, own, other) {
  const there = other.rowOf.get(own.keyOf.get(n));
  if (there === undefined) return null;
  return there === n || sameNode(there, n, other, own) ? "" : "changed";
}

const linkIn = (e, own, other) => (other.links.has(link(e, own)) ? "" : null);
const link = (e, own) => `${own.keyOf.get(e.source)}:${e.out} ${own.keyOf.get(e.target)}`;

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
