// Types on lines: on the line, where nothing else is written.
const PLACES = [0.5, 0.38, 0.62, 0.28, 0.72, 0.18, 0.82];
const CELL = 160;

// Rectangles [left, top, right, bottom], found by where they lie.
class Taken {
  constructor(all) {
    this.cells = new Map();
    all.forEach((rect) => this.add(rect));
  }

  *around([left, top, right, bottom]) {
    for (let x = Math.floor(left / CELL); x <= right / CELL; x++) {
      for (let y = Math.floor(top / CELL); y <= bottom / CELL; y++) yield `${x} ${y}`;
    }
  }

  add(rect) {
    for (const cell of this.around(rect)) {
      if (this.cells.has(cell)) this.cells.get(cell).add(rect);
      else this.cells.set(cell, new Set([rect]));
    }
  }

  // How much of a rectangle is taken.
  by(rect) {
    const near = new Set();
    for (const cell of this.around(rect)) this.cells.get(cell)?.forEach((other) => near.add(other));
    return [...near].reduce((sum, other) => sum + overlap(rect, other), 0);
  }
}

// Gives the links that have no room of their own a place for their label; returns which of them are
// crowded all along, whose labels show only when one of their ends is pointed at.
function placeLabels({ items, links, scene }, boxes) {
  const taken = new Taken(items.map(({ x, y, w, h }) => [x - w / 2, y - h / 2, x + w / 2, y + h / 2]));
  for (const [b, { x, y, w }] of boxes) {
    taken.add([x + 8, y + 6, Math.min(x + w, x + 12 + widthOf(shownTitle(scene.boxes[b]), "title")), y + 24]);
  }
  const around = (link, [x, y]) => {
    const half = widthOf(link.label, "type") / 2 + 2;
    return [x - half, y - 7, x + half, y + 7];
  };
  for (const link of links) if (link.spaced && link.at) taken.add(around(link, link.at));
  const crowded = [];
  links.forEach((link, i) => {
    if (!link.label || !link.points || (link.spaced && link.at)) return;
    let least = Infinity;
    for (const place of PLACES) {
      const at = pointOn(link.points.points, place);
      const cost = taken.by(around(link, at));
      if (cost >= least) continue;
      [least, link.at] = [cost, at];
      if (!cost) break;
    }
    taken.add(around(link, link.at));
    if (least && link.owner < 0) crowded.push(i);
  });
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
