// Types on lines: on the line, where nothing else is written.
const PLACES = [0.5, 0.44, 0.56, 0.38, 0.62, 0.33, 0.67, 0.28, 0.72, 0.23, 0.77, 0.18, 0.82];
const CELL = 160;

function* cellsOf([left, top, right, bottom]) {
  for (let x = Math.floor(left / CELL); x <= right / CELL; x++) {
    for (let y = Math.floor(top / CELL); y <= bottom / CELL; y++) yield `${x} ${y}`;
  }
}

// Rectangles [left, top, right, bottom], found by where they lie.
class Taken {
  constructor(all) {
    this.cells = new Map();
    all.forEach((rect) => this.add(rect));
  }

  add(rect) {
    for (const cell of cellsOf(rect)) {
      if (this.cells.has(cell)) this.cells.get(cell).add(rect);
      else this.cells.set(cell, new Set([rect]));
    }
  }

  // Those that a point lies in, but for their rim.
  at(x, y) {
    const near = this.cells.get(`${Math.floor(x / CELL)} ${Math.floor(y / CELL)}`);
    return near ? [...near].filter(([left, top, right, bottom]) => x > left + 1 && x < right - 1 && y > top + 1 && y < bottom - 1) : [];
  }

  // How much of a straight line from left to right or from top to bottom lies in them, but for their rim.
  along([x0, y0], [x1, y1], counts = () => true) {
    const line = [Math.min(x0, x1), Math.min(y0, y1), Math.max(x0, x1), Math.max(y0, y1)];
    let found = 0;
    for (const rect of this.near(line)) {
      const [left, top, right, bottom] = [rect[0] + 1, rect[1] + 1, rect[2] - 1, rect[3] - 1];
      const [from, to] = [Math.max(left, line[0]), Math.min(right, line[2])];
      const [above, below] = [Math.max(top, line[1]), Math.min(bottom, line[3])];
      if (from <= to && above <= below && counts(rect)) found += Math.max(to - from, below - above, 1);
    }
    return found;
  }

  near(rect) {
    const near = new Set();
    for (const cell of cellsOf(rect)) this.cells.get(cell)?.forEach((other) => near.add(other));
    return near;
  }

  // How much of a rectangle is taken.
  by(rect) {
    return [...this.near(rect)].reduce((sum, other) => sum + overlap(rect, other), 0);
  }
}

// Titles, buttons, and the types that have room in the layout.
function writtenOn({ links, scene }, boxes) {
  const found = new Taken([]);
  for (const [b, { x, y, w }] of boxes) {
    found.add([x + 8, y + 6, Math.min(x + w, x + 12 + widthOf(shownTitle(scene.boxes[b]), "title")), y + 24]);
    found.add([x + w - 26, y + 5, x + w - 6, y + 25]);
  }
  for (const link of links) if (link.spaced && link.at) found.add(aroundLabel(link, link.at));
  return found;
}

function aroundLabel(link, [x, y]) {
  const half = widthOf(link.label, "type") / 2 + 2;
  return [x - half, y - 7, x + half, y + 7];
}

// Where lines run, as far as labels are to stay clear of those of other links.
class Strokes {
  constructor(links) {
    this.cells = new Map(); // cell -> [x, y, link] of points on lines
    for (const link of links) {
      for (const [x, y] of this.along(link.points?.points ?? [])) {
        const cell = `${Math.floor(x / CELL)} ${Math.floor(y / CELL)}`;
        if (this.cells.has(cell)) this.cells.get(cell).push([x, y, link]);
        else this.cells.set(cell, [[x, y, link]]);
      }
    }
  }

  *along(points) {
    for (let piece = 0; piece + 3 < points.length; piece += 3) {
      const curve = points.slice(piece, piece + 4);
      const steps = Math.ceil(Math.hypot(curve[3][0] - curve[0][0], curve[3][1] - curve[0][1]) / 4);
      for (let i = 0; i <= steps; i++) {
        yield pointOn(curve, i / (steps || 1));
      }
    }
  }

  // How many points on lines of other links lie in a rectangle.
  through(rect, own) {
    const [left, top, right, bottom] = rect;
    let found = 0;
    for (const cell of cellsOf(rect)) {
      for (const [x, y, link] of this.cells.get(cell) ?? []) found += link !== own && x > left && x < right && y > top && y < bottom;
    }
    return found;
  }
}

// Gives the links that have no room of their own a place for their label, also those through whose
// label another line runs; returns which of them are crowded all along, whose labels show only when
// one of their ends is pointed at.
function placeLabels(visible, { width, boxes }) {
  const { items, links } = visible;
  const strokes = new Strokes(items.length <= LABEL_LIMIT ? links : []);
  for (const link of links) {
    if (link.spaced && link.at && strokes.through(aroundLabel(link, link.at), link)) link.spaced = false;
  }
  const taken = writtenOn(visible, boxes);
  for (const { x, y, w, h } of items) taken.add([x - w / 2, y - h / 2, x + w / 2, y + h / 2]);
  const crowded = [];
  links.forEach((link, i) => {
    if (!link.label || !link.points || (link.spaced && link.at)) return;
    let least = [Infinity, Infinity];
    for (const place of PLACES) {
      const at = pointOn(link.points.points, place);
      const rect = aroundLabel(link, at);
      const cost = [taken.by(rect), strokes.through(rect, link)];
      if (cost[0] > least[0] || (cost[0] === least[0] && cost[1] >= least[1])) continue;
      [least, link.at] = [cost, at];
      if (!cost[0] && !cost[1]) break;
    }
    taken.add(aroundLabel(link, link.at));
    if (least[0] && link.owner < 0) crowded.push(i);
  });
  for (const link of links) {
    if (!link.label || !link.at) continue;
    const half = widthOf(link.label, "type") / 2 + 2;
    link.at = [Math.max(half, Math.min(width - half, link.at[0])), link.at[1]]; // not beyond the picture
  }
  return crowded;
}

const overlap = (a, b) => Math.max(0, Math.min(a[2], b[2]) - Math.max(a[0], b[0])) * Math.max(0, Math.min(a[3], b[3]) - Math.max(a[1], b[1]));

// A point of a chain of cubic curves: 0 at its beginning, 1 at its end.
function pointOn(points, place) {
  const pieces = (points.length - 1) / 3;
  const piece = Math.min(pieces - 1, Math.floor(place * pieces));
  const [t, [a, b, c, d]] = [place * pieces - piece, points.slice(3 * piece, 3 * piece + 4)];
  const s = 1 - t;
  return [0, 1].map((i) => s * s * s * a[i] + 3 * s * s * t * b[i] + 3 * s * t * t * c[i] + t * t * t * d[i]);
}
