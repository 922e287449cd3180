// A node or a box is chosen, by a click, a key, a link or a search.
// Select a node or a box; reveal: open what hides it, and bring it into sight.
async function choose(selected, reveal = false) {
  state.selected = selected;
  const there = selected ? paneWith(selected) : active;
  if (!there && selected.node !== undefined) return;
  activate(there ?? active);
  const { scene } = active;
  if (reveal && selected) {
    const hidden = selected.node !== undefined && scene.boxes[scene.at.get(scene.rowOf(selected.node)).box].column !== 0 && !byId("derived").checked;
    if (hidden) byId("derived").checked = true;
    if (keepOpen(selected) || hidden) await refresh(() => [0, 0]);
  }
  showPanel();
  noteAddress();
  mark();
  const item = active.itemOf(selected);
  if (item) say(describeItem(item, scene));
  if (reveal || (selected && isNarrow())) bring(selected);
}

// Into sight where one is, and in the other pane.
function bring(selected) {
  active.camera.led(() => active.bring(selected));
  for (const pane of panes()) if (pane !== active) pane.bring(selected);
}

function showPanel() {
  const { selected } = state;
  const { scene } = active;
  const b = scene.places.get(selected?.box);
  const n = selected?.node === undefined ? undefined : scene.rowOf(selected.node);
  if (n !== undefined) panel.node(n, scene, overlays);
  else if (b !== undefined) panel.box(b, scene, state.shut.has(selected.box));
  else panel.overview(scene, state.panes);
  if (selected && isNarrow() && !state.panes) openPanel(true);
}

// Where picture and panel have no room beside each other, the panel opens when something is chosen.
const isNarrow = () => innerWidth < 1000;

function openPanel(open) {
  document.body.classList.toggle("no-panel", !open);
  byId("panel-button").setAttribute("aria-expanded", String(open));
}

// What is selected and found, and what belongs to that or to the item of a pane that is pointed at.
function mark(pointed = null, where = active) {
  const chosen = pointed ? where.chosenAs(pointed) : state.selected;
  for (const pane of panes()) {
    const hits = new Set(state.hits.map((n) => pane.scene.rowOf(n)));
    pane.mark(pane === where && pointed ? pointed : pane.itemOf(chosen), pane.itemOf(state.selected), hits);
  }
}

// Found in any pane: what is in several is found once.
function find(query, redraw = true) {
  const found = new Map();
  for (const { search, scene } of panes()) for (const n of search(query)) found.set(scene.at.get(n).key, n);
  state.hits = [...found.values()];
  state.hit = -1;
  byId("clear").hidden = !query;
  byId("found").textContent = query.trim() ? plural(state.hits.length, "match").replace("matchs", "matches") : "";
  if (redraw) mark();
}

function nextHit(step) {
  if (!state.hits.length) return false;
  const count = state.hits.length;
  state.hit = state.hit < 0 ? (step > 0 ? 0 : count - 1) : (state.hit + step + count) % count;
  byId("found").textContent = `${state.hit + 1} of ${count}`;
  choose({ node: state.hits[state.hit] }, true);
  return true;
}

function clearSearch() {
  byId("query").value = "";
  find("");
}
