// Ordering edges: items of which the first is to stand above the second although nothing joins them. They
// keep boxes from overlapping in height, so that these can stand below each other. What reads
// nothing of its column goes to the inner side of what comes into its box: below it in the user's
// part, above it in the mirrored one, and above what stands alone in the box that this comes from. A
// line from column to column would pull these past each other.
function ordering(visible) {
  if (visible.items.length > 2 * MANY) return []; // Graphviz would look three times as long
  const found = wished(visible);
  return isTangled(visible, found) ? [] : found;
}

// Collapsed boxes of what the user built from gradients: nothing else would order them.
function belowEachOther(items, levels, scene) {
  const shut = items.filter((item) => item.shut !== undefined && item.column > 1 && scene.boxes[item.shut].kind === "scope");
  return [...grouped(shut, (item) => item.box).values()].flatMap((beside) => {
    beside.sort((a, b) => levels.get(a) - levels.get(b));
    return beside.slice(1).map((item, i) => [beside[i], item]);
  });
}

function wished({ scene, items, links }) {
  const levels = new Map(items.map((item) => [item, levelOf(item, scene)]));
  const comesIn = new Map(); // box -> what is read in it of what is outside, in the same column
  const alone = new Map(); // box of column 1 -> what is in it that nothing of the column is joined to
  const reading = new Set();
  const read = new Set();
  const add = (map, key, value) => (map.has(key) ? map.get(key).push(value) : map.set(key, [value]));
  for (const { a, b, across } of links) {
    if (across || a.column !== b.column || a.column > 1) continue;
    reading.add(b);
    read.add(a);
    for (const box of entered(a.box, b.box, scene.boxes)) add(comesIn, box, a);
  }
  const many = items.length > LABEL_LIMIT; // then copies of constants have none: they cost layout time
  const free = items.filter((item) => item.node !== undefined && !(item.copy && many) && !reading.has(item));
  for (const item of free) {
    if (item.column === 1 && !read.has(item)) for (const box of entered(-1, item.box, scene.boxes)) add(alone, box, item);
  }
  for (const found of [...comesIn.values(), ...alone.values()]) found.sort((a, b) => levels.get(a) - levels.get(b));
  const found = belowEachOther(items, levels, scene);
  for (const item of free) {
    const box = entered(-1, item.box, scene.boxes).find((b) => comesIn.has(b));
    const sources = comesIn.get(box) ?? [];
    const lower = (a) => levels.get(a) > levels.get(item);
    if (item.column === 0) {
      const above = sources.findLast((a) => levels.get(a) < levels.get(item));
      if (above) found.push([above, item]);
    } else if (item.column === 1) {
      const below = sources.find(lower);
      if (!below) continue;
      found.push([item, below]);
      const beside = alone.get(entered(item.box, below.box, scene.boxes).at(-1))?.find(lower);
      if (beside) found.push([item, beside]);
    }
  }
  return found;
}

// The boxes around the second place that are not around the first.
function entered(from, to, boxes) {
  const around = new Set();
  for (let b = from; b >= 0; b = boxes[b].parent) around.add(b);
  const found = [];
  for (let b = to; b >= 0 && !around.has(b); b = boxes[b].parent) found.push(b);
  return found;
}

// Whether lines, ordering edges and pairs side by side cannot all be met: Graphviz would draw anything then.
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
