// Types on lines from column to column: on the line, where nothing else is written.
const PLACES = [0.5, 0.38, 0.62, 0.28, 0.72, 0.18, 0.82];

// Gives these links a place for their label; returns which of them are crowded all along, whose
// labels show only when one of their ends is pointed at.
function placeLabels({ items, links, scene }, boxes) {
  const taken = items.map(({ x, y, w, h }) => [x - w / 2, y - h / 2, x + w / 2, y + h / 2]);
  for (const [b, { x, y, w }] of boxes) {
    taken.push([x + 8, y + 6, Math.min(x + w, x + 12 + widthOf(shownTitle(scene.boxes[b]), "title")), y + 24]);
  }
  const around = (link, [x, y]) => {
    const half = widthOf(link.label, "type") / 2 + 2;
    return [x - half, y - 7, x + half, y + 7];
  };
  for (const link of links) if (link.label && link.at && !link.across) taken.push(around(link, link.at));
  const crowded = [];
  links.forEach((link, i) => {
    if (!link.label || !link.across) return;
    let least = Infinity;
    for (const place of PLACES) {
      const at = pointOn(link.points.points, place);
      const cost = taken.reduce((sum, other) => sum + overlap(around(link, at), other), 0);
      if (cost >= least) continue;
      [least, link.at] = [cost, at];
      if (!cost) break;
    }
    taken.push(around(link, link.at));
    if (least) crowded.push(i);
  });
  return crowded;
}

const overlap = (a, b) => Math.max(0, Math.min(a[2], b[2]) - Math.max(a[0], b[0])) * Math.max(0, Math.min(a[3], b[3]) - Math.max(a[1], b[1]));

// A point of a cubic curve.
function pointOn([a, b, c, d], t) {
  const s = 1 - t;
  return [0, 1].map((i) => s * s * s * a[i] + 3 * s * s * t * b[i] + 3 * s * t * t * c[i] + t * t * t * d[i]);
}
