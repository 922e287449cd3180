// Boxes collapse and expand, in all panes.

// A box and its mirror image: a gradient opens beside what it is of. Of things that repeat, one is
// open at a time.
function fold(b, { scene } = active) {
  const { key, title } = scene.boxes[b];
  const open = state.shut.has(key);
  for (const box of [b, scene.twins.get(b)]) {
    if (box === undefined) continue;
    if (!open) state.shut.add(scene.boxes[box].key);
    else {
      const around = scene.boxes[scene.boxes[box].parent];
      if (around.kind === "part") for (const other of around.inner) state.shut.add(scene.boxes[other].key);
      state.shut.delete(scene.boxes[box].key);
    }
  }
  state.selected = { box: key };
  say(`${title} ${open ? "expanded" : "collapsed"}`);
  showPanel();
  return refresh((pane) => pane.whereIs(key));
}

function keepOpen(selected) {
  let opened = false;
  for (const { scene } of panes()) {
    const n = selected?.node === undefined ? undefined : scene.rowOf(selected.node);
    let b = n !== undefined ? scene.at.get(n).box : scene.boxes[scene.places.get(selected?.box)]?.parent;
    for (; b >= 0; b = scene.boxes[b].parent) opened = state.shut.delete(scene.boxes[b].key) || opened;
  }
  return opened;
}

function foldAll(shut) {
  const all = panes().flatMap(({ scene }) => scene.boxes.filter((b) => b.parent >= 0 || b.kind !== "column"));
  state.shut = new Set(shut ? all.map((b) => b.key) : []);
  if (!shut && panes().some(({ scene }) => scene.nodes.length > VISIBLE_LIMIT)) {
    state.shut = outermostOfAll(VISIBLE_LIMIT);
    return refresh().then(() => tell(`${plural(state.shut.size, "box")} stay collapsed: ${VISIBLE_LIMIT} things are laid out at once, no more.`));
  }
  return refresh();
}
