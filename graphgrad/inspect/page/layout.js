// What Graphviz is asked, and what it answers. The DOT has numbers only: sizes, ranks, who is joined to whom.
const MANY = 800; // items above which Graphviz looks less long for what is a little better

function dotOf(visible) {
  const { scene, items, links, open } = visible;
  const framed = scene.boxes.filter((b, i) => b.kind === "column" && open.has(i)).length > 1;
  const inside = grouped(items, (item) => item.box);
  const rows = [
    `digraph{graph[rankdir=TB,newrank=true,nodesep=0.3,ranksep=0.32${items.length > MANY ? ",mclimit=0.3,nslimit=0.1" : ""}]`,
    'node[shape=box,fixedsize=true,label=""]edge[arrowsize=0.7]',
  ];
  const stack = scene.boxes.map((b, i) => i).filter((i) => scene.boxes[i].parent < 0 && open.has(i)).reverse();
  const write = (item) => rows.push(`n${item.id}[width=${inches(item.w)},height=${inches(item.h)}]`);
  (inside.get(-1) ?? []).forEach(write);
  while (stack.length) {
    const at = stack.pop();
    if (typeof at === "string") {
      rows.push(at);
      continue;
    }
    const box = scene.boxes[at];
    rows.push(`subgraph cluster_${at}{margin=${box.kind === "column" ? 14 : 10}`);
    rows.push(box.kind !== "column" || framed ? `label=${room(titleWidth(box), 18)};labeljust=l` : 'label=""');
    (inside.get(at) ?? []).forEach(write);
    stack.push("}", ...box.inner.filter((i) => open.has(i)).reverse());
  }
  rows.push(...anchors(visible));
  for (const row of sideBySide(visible)) rows.push(`{rank=same;${row.map((i) => `n${i.id}`).join(";")}}`);
  for (const [above, below] of ordering(visible)) rows.push(`n${above.id}->n${below.id}[style=invis]`);
  links.forEach((link, i) => {
    if (link.across) return;
    const [a, b] = link.mirrored ? [link.b, link.a] : [link.a, link.b];
    const label = link.spaced ? `,label=${room(widthOf(link.label, "type") + 6, 12)}` : "";
    rows.push(`n${a.id}->n${b.id}[id=${i}${link.mirrored ? ",dir=back" : ""}${label}]`);
  });
  rows.push("}");
  return rows.join("\n");
}

// What stands side by side; without what was removed where that goes against the lines.
function sideBySide(visible) {
  if (!isTangled(visible, [])) return visible.pairs;
  const rows = visible.pairs.map((row) => row.filter((item) => visible.scene.statusOf(item) !== "removed"));
  return rows.filter((row) => row.length > 1);
}

const inches = (points) => (points / 72).toFixed(6);
const titleWidth = (box) => widthOf(shownTitle(box), "title") + 34;
const shownTitle = (box) => middleCut(box.title, 52);
const room = (w, h) =>
  `<<table border="0" cellpadding="0" cellspacing="0" fixedsize="true" width="${Math.ceil(w)}" height="${h}"><tr><td></td></tr></table>>`;

// Invisible nodes above and below keep the columns in order from left to right.
function anchors({ scene, items }) {
  const columns = grouped(items.filter((item) => item.kind !== "ghost"), (item) => item.column);
  if (columns.size < 2) return [];
  const rows = [];
  const numbers = [...columns.keys()].sort((a, b) => a - b);
  for (const [end, rank] of [["t", "min"], ["b", "max"]]) {
    const row = numbers.filter((c) => end === "t" || c < 2);
    for (const c of row) {
      const members = columns.get(c);
      const item = (end === "t") === (c !== 1) ? members[0] : members[members.length - 1];
      rows.push(`${end}${c}[style=invis,width=0.01,height=0.01]`);
      rows.push(end === "t" ? `${end}${c}->n${item.id}[style=invis]` : `n${item.id}->${end}${c}[style=invis]`);
    }
    const chain = row.map((c) => `${end}${c}`).join("->");
    rows.push(`{rank=${rank};${chain}${row.length > 1 ? "[style=invis]" : ""}}`);
  }
  return rows;
}

// Positions with y downwards: items get x, y; boxes and links are returned.
function placed(visible, json) {
  const [, , width, height] = json.bb.split(",").map(Number);
  const boxes = new Map();
  for (const object of json.objects ?? []) {
    if (object.name.startsWith("cluster_")) {
      const [x, y, right, top] = object.bb.split(",").map(Number);
      boxes.set(Number(object.name.slice(8)), { x, y: height - top, w: right - x, h: top - y });
    } else if (object.name[0] === "n") {
      const [x, y] = object.pos.split(",").map(Number);
      Object.assign(visible.items[Number(object.name.slice(1))], { x, y: height - y });
    }
  }
  for (const edge of json.edges ?? []) {
    if (edge.id === undefined) continue;
    const link = visible.links[Number(edge.id)];
    link.points = splineOf(edge.pos, height, link.mirrored);
    if (edge.lp) {
      const [x, y] = edge.lp.split(",").map(Number);
      link.at = [x, height - y];
    }
  }
  for (const link of visible.links) if (link.across) curve(link);
  const ways = new Ways(visible, boxes);
  document.documentElement.dataset.led = ways.led;
  return { width, height, boxes };
}

// Points of a spline from the source to the tip at the target.
function splineOf(pos, height, mirrored) {
  let tip = null;
  const points = [];
  for (const part of pos.split(" ")) {
    const fields = part.split(",");
    const point = fields.slice(-2).map(Number);
    point[1] = height - point[1];
    if (fields.length === 3) tip = point;
    else points.push(point);
  }
  if (mirrored) points.reverse();
  return { points, tip: tip ?? points[points.length - 1] };
}

// Edges between columns do not take part in the layout: a curve from side to side.
function curve(link) {
  const { a, b } = link;
  const side = b.x >= a.x ? 1 : -1;
  const [x, y] = [a.x + (side * a.w) / 2, a.y];
  const tip = [b.x - (side * b.w) / 2, b.y];
  const base = [tip[0] - side * 7, tip[1]];
  const bend = Math.max(30, Math.abs(base[0] - x) / 2) * side;
  link.points = { points: [[x, y], [x + bend, y], [base[0] - bend, base[1]], base], tip };
  link.at = [(x + base[0]) / 2, (y + base[1]) / 2];
}
