// Struts: items of which the first is to stand above the second although nothing joins them. They
// keep boxes from overlapping in height, so that these can stand below each other: what reads
// nothing goes below what comes into its box, and a gradient that reads no gradient goes above what
// reads its forward node.
function struts(visible) {
  const found = wished(visible);
  return isTangled(visible, found) ? [] : found;
}

function wished({ scene, items, links, byKey }) {
  const into = new Map();
  const out = new Map();
  for (const { a, b, across, status } of links) {
    if (across || status === "removed") continue;
    into.set(b, [...(into.get(b) ?? []), a]);
    out.set(a, [...(out.get(a) ?? []), b]);
  }
  const levels = new Map(items.map((item) => [item, levelOf(item, scene)]));
  const level = (item) => levels.get(item);
  const highest = (found) => found.reduce((best, i) => (best && level(best) <= level(i) ? best : i), undefined);
  const found = [];
  for (const item of items) {
    if (into.has(item) || item.node === undefined || item.copy || scene.statusOf(item) === "removed") continue;
    if (item.column === 0 && scene.boxes[item.box].parent >= 0 && out.has(item)) {
      const above = into.get(highest(out.get(item))).filter((a) => a.box !== item.box && level(a) < level(item));
      found.push(...above.map((a) => [a, item]));
    } else if (item.column === 1) {
      const readers = endsOf(item.node, scene).flatMap((n) => out.get(byKey.get(`n${n}`)) ?? []);
      const below = highest(readers.filter((r) => r.column === 0 && level(r) > level(item)));
      if (below) found.push([item, below]);
    }
  }
  return found;
}

// Whether lines, struts and pairs side by side cannot all be met: Graphviz would draw anything then.
function isTangled({ items, links, pairs }, wanted) {
  const side = new Map();
  const row = (item) => {
    while (side.has(item)) item = side.get(item);
    return item;
  };
  for (const [first, ...others] of pairs) for (const other of others) if (row(other) !== row(first)) side.set(row(other), row(first));
  const lines = links.filter((l) => !l.across).map((l) => (l.mirrored ? [l.b, l.a] : [l.a, l.b]));
  const below = new Map();
  const waits = new Map(items.map((item) => [row(item), 0]));
  for (const [a, b] of [...lines, ...wanted]) {
    const [from, to] = [row(a), row(b)];
    if (below.has(from)) below.get(from).push(to);
    else below.set(from, [to]);
    waits.set(to, waits.get(to) + 1);
  }
  const free = [...waits.keys()].filter((item) => !waits.get(item));
  let count = 0;
  while (free.length) {
    const item = free.pop();
    count += 1;
    for (const to of below.get(item) ?? []) {
      waits.set(to, waits.get(to) - 1);
      if (!waits.get(to)) free.push(to);
    }
  }
  return count < waits.size;
}

// How far down an item stands: a collapsed box below all that is in it, mirrored ones above.
function levelOf({ node, shut, column, of }, scene) {
  const height = (n) => scene.at.get(n).height;
  if (shut === undefined) return height(node ?? of);
  const heights = scene.within(shut).map(height);
  return heights.reduce((a, b) => (column === 1 ? Math.min(a, b) : Math.max(a, b)));
}

// The forward nodes whose values a derived node is the gradient of.
function endsOf(n, scene) {
  const origin = originOf(n);
  if (!origin) return [];
  if (origin.region === undefined) return [origin.node];
  return data.regions[origin.region].outputs.map(([end]) => end).filter((end) => scene.at.has(end));
}
