// A node or a box is chosen, by a click, a key, a link or a search.
// Select a node or a box; reveal: open what hides it, and bring it into sight.
async function choose(selected, reveal = false) {
  state.selected = selected;
  if (selected?.node !== undefined && !scene.at.has(selected.node)) return;
  if (reveal && selected) {
    const hidden = selected.node !== undefined && scene.boxes[scene.at.get(selected.node).box].column !== 0 && !byId("derived").checked;
    if (hidden) byId("derived").checked = true;
    if (keepOpen(selected) || hidden) await refresh(() => [0, 0]);
  }
  showPanel();
  noteAddress();
  mark();
  const item = itemOf(selected);
  if (item) say(describeItem(item, scene));
  if (reveal || (selected && isNarrow())) bring(selected, item);
}

function bring(selected, item) {
  const { x, y, k } = camera;
  if (item) {
    const { width, height } = svg.getBoundingClientRect();
    const [sx, sy] = [item.x * k + x, item.y * k + y];
    const inside = sx > 60 && sy > 40 && sx < width - 60 && sy < height - 40;
    if (!inside || k < 0.5) camera.centre(item.x, item.y);
  } else if (selected?.box) {
    const box = picture.boxes.get(scene.places.get(selected.box));
    if (box) camera.centre(box.x + box.w / 2, box.y + box.h / 2);
  }
}

function itemOf(selected) {
  const { byKey, items } = picture.visible ?? { byKey: new Map(), items: [] };
  if (selected?.node !== undefined) {
    return byKey.get(`n${selected.node}`) ?? items.find((i) => i.node === selected.node) ?? picture.visible?.inlined.get(selected.node);
  }
  return selected?.box === undefined ? undefined : byKey.get(`b${scene.places.get(selected.box)}`);
}

function showPanel() {
  const { selected } = state;
  const b = scene.places.get(selected?.box);
  if (selected?.node !== undefined && scene.at.has(selected.node)) panel.node(selected.node, scene, overlays);
  else if (b !== undefined) panel.box(b, scene, state.shut.has(selected.box));
  else panel.overview(scene);
  if (selected && isNarrow()) openPanel(true);
}

// Where picture and panel have no room beside each other, the panel opens when something is chosen.
const isNarrow = () => innerWidth < 1000;

function openPanel(open) {
  document.body.classList.toggle("no-panel", !open);
  byId("panel-button").setAttribute("aria-expanded", String(open));
}

// Classes of what is selected, found, and related to what is pointed at.
function mark(pointed = null) {
  if (!picture.visible) return;
  const selected = itemOf(state.selected);
  const centre = pointed ?? selected;
  const related = centre?.node !== undefined && scene.at.has(centre.node) ? scene.related(centre.node) : null;
  const hits = new Set(state.hits);
  const lit = new Set();
  for (const item of picture.visible.items) {
    const group = picture.nodes.get(item.key);
    const inside = item.node === undefined ? insideOf(item, related, hits) : [related?.has(item.node), hits.has(item.node)];
    if (inside[0]) lit.add(item);
    group.classList.toggle("lit", Boolean(inside[0]));
    group.classList.toggle("hit", Boolean(inside[1]));
    group.classList.toggle("selected", item === selected);
  }
  for (const group of picture.world.querySelectorAll(".link, .word")) {
    const { a, b } = picture.visible.links[group.dataset.link];
    group.classList.toggle("lit", lit.has(a) && lit.has(b));
    group.classList.toggle("near", centre !== undefined && (a === centre || b === centre));
  }
  for (const group of picture.world.querySelectorAll(".box")) {
    group.classList.toggle("selected", scene.boxes[group.dataset.box].key === state.selected?.box);
  }
  picture.world.classList.toggle("dimmed", related !== null);
  if (selected) svg.setAttribute("aria-activedescendant", `i${selected.id}`);
  else svg.removeAttribute("aria-activedescendant");
}

function insideOf(item, related, hits) {
  if (item.shut === undefined) return [false, false];
  const shows = (n) => picture.visible.rep[scene.at.get(n)?.box] === item.shut;
  return [related && [...related].some(shows), [...hits].some(shows)];
}

function find(query, redraw = true) {
  state.hits = search(query);
  state.hit = -1;
  byId("clear").hidden = !query;
  byId("found").textContent = query.trim() ? plural(state.hits.length, "match").replace("matchs", "matches") : "";
  if (redraw) mark();
}

function nextHit(step) {
  if (!state.hits.length) return;
  const count = state.hits.length;
  state.hit = state.hit < 0 ? (step > 0 ? 0 : count - 1) : (state.hit + step + count) % count;
  byId("found").textContent = `${state.hit + 1} of ${count}`;
  choose({ node: state.hits[state.hit] }, true);
}
