// Keys.
const ARROWS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

// The item to go to from another in a direction: near ones first, joined ones before others.
function beside(from, [dx, dy]) {
  const joined = new Set();
  const { visible } = active.picture;
  for (const { a, b } of visible.links) if (a === from || b === from) joined.add(a === from ? b : a);
  let best = null;
  let least = Infinity;
  for (const item of visible.items) {
    const [x, y] = [item.x - from.x, item.y - from.y];
    const along = x * dx + y * dy;
    const cost = (along + 2 * Math.abs(x * dy + y * dx)) * (joined.has(item) ? 0.4 : 1);
    if (item !== from && along > 4 && cost < least) [best, least] = [item, cost];
  }
  return best;
}

function arrow(direction) {
  const { camera } = active;
  const from = active.itemOf(state.selected);
  if (!from) {
    camera.led(() => camera.pan(-60 * direction[0], -60 * direction[1]));
    return;
  }
  const to = beside(from, direction);
  if (to) choose(active.chosenAs(to), true);
}

function zoom(factor) {
  active.camera.led(() => active.camera.zoom(factor));
}

function toGradient() {
  const { scene } = active;
  const n = state.selected?.node === undefined ? undefined : scene.rowOf(state.selected.node);
  if (n === undefined) return;
  const origin = originOf(n);
  const there = origin
    ? (origin.node ?? scene.members.get(origin.region)?.at(-1))
    : (scene.derivedFrom.get(n)?.[0] ?? regionsAround(n).map((r) => scene.builtFor.get(r)?.[0]).find((m) => m !== undefined));
  if (there !== undefined) choose({ node: there }, true);
}

function toggle(id) {
  if (byId(id).disabled) {
    tell(byId(id).closest("label").title);
    return;
  }
  byId(id).checked = !byId(id).checked;
  byId(id).dispatchEvent(new Event("change"));
}

const KEYS = {
  "+": () => zoom(1.25),
  "=": () => zoom(1.25),
  "-": () => zoom(0.8),
  0: fitAll,
  s: () => toggle("saved"),
  b: () => toggle("bypassed"),
  d: () => toggle("derived"),
  y: () => toggle("types"),
  p: () => data.frames.length > 1 && toggle("beside"),
  o: toOther,
  g: toGradient,
  c() {
    const { scene } = active;
    const b = state.selected?.node !== undefined ? scene.at.get(scene.rowOf(state.selected.node))?.box : scene.places.get(state.selected?.box);
    if (b !== undefined && !state.shut.has(scene.boxes[b].key)) fold(b);
  },
  "[": () => data.frames.length > 1 && goStep(state.step - 1),
  "]": () => data.frames.length > 1 && goStep(state.step + 1),
  "/": () => byId("query").select(),
  n: () => nextHit(1),
  N: () => nextHit(-1),
  "?": showKeys,
  Escape: () => (byId("options").hidden ? choose(null) : menu(false)),
};

addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input:not([type=checkbox]), select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing) {
    if (event.key !== "Escape") return;
    if (typing === byId("query")) clearSearch();
    typing.blur();
    return;
  }
  const inPicture = panes().some(({ svg }) => svg.contains(event.target)) || event.target === document.body;
  if (inPicture && event.key in ARROWS) arrow(ARROWS[event.key]);
  else if (inPicture && event.key === "Enter") enter(event.target);
  else if (event.key in KEYS) KEYS[event.key]();
  else return;
  event.preventDefault();
});

function showKeys() {
  choose(null);
  openPanel(true);
  byId("keys").scrollIntoView();
}

const onHit = () => state.hits.length > 1 && state.hit >= 0 && state.selected?.node === state.hits[state.hit];

function enter(target) {
  const folding = target.closest?.("[data-fold]");
  const item = active.itemOf(state.selected);
  const first = active.picture.visible?.items[0];
  if (folding) fold(Number(folding.dataset.fold));
  else if (onHit()) nextHit(1);
  else if (item?.shut !== undefined) fold(item.shut);
  else if (state.selected) openPanel(true);
  else if (first) choose(active.chosenAs(first), true);
}
