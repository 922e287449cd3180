// Lines that go around nodes. Graphviz places nodes in rows, the same in all columns: between rows
// the whole width is free, between columns the whole height. A line that would run under a node
// leaves through the top or bottom of its node, and takes these ways.
const BEND = 9;
const STEP = 2; // how closely a line is looked at
const HEAD = 7;

class Ways {
  constructor(visible, boxes) {
    const { items, links, scene } = visible;
    this.words = writtenOn(visible, boxes); // better not struck through
    this.rects = new Taken(items.map((item) => Object.assign([item.x - item.w / 2, item.y - item.h / 2, item.x + item.w / 2, item.y + item.h / 2], { item })));
    this.rows = new Gaps(items.map(({ y, h }) => [y - h / 2, y + h / 2]), 12);
    this.aisles = new Gaps([...grouped(items, (item) => item.column).values()].map((all) => [Math.min(...all.map(({ x, w }) => x - w / 2)), Math.max(...all.map(({ x, w }) => x + w / 2))]), 18);
    const drawn = links.filter((link) => link.points);
    for (const link of drawn) if (!link.across && strays(link, boxes.get(around(link, scene)))) this.straighten(link);
    const hidden = drawn.filter((link) => this.under(link, link.points).nodes);
    hidden.forEach((link) => this.lead(link));
    this.led = hidden.length;
  }

  // How many points of a line lie under nodes that are not its ends, and under words: as far as that
  // costs less than the limit.
  under({ a, b }, { points }, limit = Infinity) {
    const found = { nodes: 0, words: 0 };
    const isOther = ({ item }) => item !== a && item !== b;
    for (let piece = 0; piece + 3 < points.length && costOf(found) < limit; piece += 3) {
      const curve = points.slice(piece, piece + 4);
      const [from, , , to] = curve;
      if (isStraight(curve)) {
        found.nodes += this.rects.along(from, to, isOther) / STEP;
        found.words += this.words.along(from, to) / STEP;
        continue;
      }
      const steps = Math.max(2, Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1]) / STEP));
      for (let i = 0; i <= steps; i++) {
        const [x, y] = pointOn(curve, i / steps);
        if (this.rects.at(x, y).some(isOther)) found.nodes += 1;
        if (this.words.at(x, y).length) found.words += 1;
      }
    }
    return found;
  }

  // A short way for a line that Graphviz leads out of the box of both its ends, to have room for its
  // type: from the one to the other, where nothing is between them.
  straighten(link) {
    const { a, b } = link;
    const down = Math.sign(b.y - a.y);
    const free = Math.abs(b.y - a.y) - (a.h + b.h) / 2;
    if (free < 2 * HEAD) return;
    const side = Math.sign(b.x - a.x);
    for (const share of [0, 0.25, 0.4]) {
      const start = [a.x + side * share * a.w, a.y + (down * a.h) / 2];
      const tip = [b.x - side * share * b.w, b.y - (down * b.h) / 2];
      const base = [tip[0], tip[1] - down * HEAD];
      const points = { points: [start, [start[0], start[1] + (down * free) / 2], [base[0], base[1] - (down * free) / 2], base], tip };
      if (this.under(link, points).nodes) continue;
      link.points = points;
      link.spaced = false; // its label finds a place on it
      return;
    }
  }

  // The way with the fewest nodes over it, the shortest of these.
  lead(link) {
    let best = { points: link.points, cost: costOf(this.under(link, link.points)) };
    const ways = [...this.between(link)].map((way) => ({ ...way, length: lengthOf(way.corners) }));
    for (const way of ways.sort((p, q) => p.length - q.length)) {
      const { corners, length } = way;
      if (length >= best.cost) break;
      const points = rounded(corners);
      const cost = costOf(this.under(link, points, best.cost - length)) + length;
      if (cost < best.cost) best = { points, cost, way };
    }
    link.points = best.points;
    best.way?.taken.forEach((gap) => (gap.used += 1));
    if (!link.spaced) link.at = pointOn(link.points.points, 0.5);
    else if (best.way) link.spaced = false; // its label goes with it
  }

  // Ways between two nodes: out of the top or bottom, along a row, an aisle and a row, and in again;
  // or in from the side of the aisle.
  *between({ a, b }) {
    const side = b.x >= a.x ? 1 : -1;
    for (const up of [-1, 1]) {
      const from = this.rows.beside(a.y, up);
      for (const lean of [side, -side]) {
        const out = a.x + (lean * a.w) / 4;
        const start = [out, a.y + (up * a.h) / 2];
        for (const y0 of from.tracks()) {
          yield* this.ending(b, from, -lean, [start, [out, y0]]);
          for (const aisle of this.aisles.all) {
            const [x] = aisle.tracks();
            const edge = b.x + (Math.sign(x - b.x) * b.w) / 2;
            yield { corners: [start, [out, y0], [x, y0], [x, b.y], [edge, b.y]], taken: [from, aisle] };
          }
        }
      }
    }
  }

  *ending(b, from, lean, begun) {
    const into = b.x + (lean * b.w) / 4;
    const y0 = begun[1][1];
    for (const up of [-1, 1]) {
      const to = this.rows.beside(b.y, up);
      const end = [into, b.y + (up * b.h) / 2];
      if (from === to) {
        yield { corners: [...begun, [into, y0], end], taken: [from] };
        continue;
      }
      for (const y1 of to.tracks()) {
        for (const aisle of this.aisles.all) {
          const [x] = aisle.tracks();
          yield { corners: [...begun, [x, y0], [x, y1], [into, y1], end], taken: [from, to, aisle] };
          for (const way of [-1, 1]) {
            const [edge, beside] = [b.x + (way * b.w) / 2, b.x + way * (b.w / 2 + BEND)];
            yield { corners: [...begun, [x, y0], [x, y1], [beside, y1], [beside, b.y], [edge, b.y]], taken: [from, to, aisle] };
          }
        }
      }
    }
  }
}

// The innermost box around both ends of a link.
function around({ a, b }, { boxes }) {
  const outer = new Set();
  for (let box = a.box; box >= 0; box = boxes[box].parent) outer.add(box);
  let box = b.box;
  while (box >= 0 && !outer.has(box)) box = boxes[box].parent;
  return box;
}

// Whether a line leaves a box.
const strays = ({ points: { points } }, box) =>
  box !== undefined && points.some(([x, y]) => x < box.x - 1 || x > box.x + box.w + 1 || y < box.y - 1 || y > box.y + box.h + 1);

const costOf = ({ nodes, words }) => 1e6 * nodes + 40 * words;

const lengthOf = (corners) => corners.slice(1).reduce((sum, [x, y], i) => sum + Math.abs(x - corners[i][0]) + Math.abs(y - corners[i][1]), 0);

// Whether a curve is a straight line from left to right, or from top to bottom.
const isStraight = (curve) => [0, 1].some((axis) => curve.every((point) => Math.abs(point[axis] - curve[0][axis]) < 0.01));

// What is free between intervals, and beside them.
class Gaps {
  constructor(intervals, margin) {
    const sorted = intervals.sort((p, q) => p[0] - q[0]);
    this.all = [];
    let end = sorted[0][0] - margin;
    for (const [low, high] of sorted) {
      if (low > end + 1) this.all.push(new Gap(end, low));
      end = Math.max(end, high);
    }
    this.all.push(new Gap(end, end + margin));
  }

  // The gap before or after a place.
  beside(place, direction) {
    const after = this.all.findIndex(({ low }) => low >= place);
    return this.all[direction > 0 ? after : after - 1];
  }
}

class Gap {
  constructor(low, high) {
    Object.assign(this, { low, high, used: 0 });
  }

  // Places for one more line, away from those before it.
  tracks() {
    return [0.5, 0, 0.8].map((start) => {
      const share = (start + this.used * 0.618) % 1;
      return this.low + (this.high - this.low) * (0.15 + 0.7 * share);
    });
  }
}

// A line along these corners, which are rounded, and the tip of its arrow.
function rounded(corners) {
  const tip = corners[corners.length - 1];
  const before = corners[corners.length - 2];
  const length = Math.hypot(tip[0] - before[0], tip[1] - before[1]) || 1;
  const head = Math.min(HEAD, length);
  const ends = [...corners.slice(0, -1), [0, 1].map((i) => tip[i] - ((tip[i] - before[i]) / length) * head)];
  const points = [ends[0]];
  const straight = (to) => {
    const from = points[points.length - 1];
    points.push(...[1 / 3, 2 / 3].map((t) => [0, 1].map((i) => from[i] + (to[i] - from[i]) * t)), to);
  };
  for (let i = 1; i < ends.length - 1; i++) {
    const [p, q, r] = ends.slice(i - 1, i + 2);
    const near = (other) => {
      const far = Math.hypot(other[0] - q[0], other[1] - q[1]) || 1;
      const bend = Math.min(BEND, far / 2);
      return [0, 1].map((k) => q[k] + ((other[k] - q[k]) / far) * bend);
    };
    straight(near(p));
    points.push(q, q, near(r));
  }
  straight(ends[ends.length - 1]);
  return { points, tip };
}
