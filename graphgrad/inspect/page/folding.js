// Boxes collapse and expand.
function where(key) {
  const b = scene.places.get(key);
  const item = picture.visible.byKey.get(`b${b}`);
  if (item) return [item.x - item.w / 2, item.y - item.h / 2];
  const box = picture.boxes.get(b);
  return box ? [box.x, box.y] : undefined;
}

// A box and its mirror image: a gradient opens beside what it is of. Of things that repeat, one is
// open at a time.
function fold(b) {
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
  return refresh(() => where(key));
}

function keepOpen(selected) {
  let b = selected?.node !== undefined ? scene.at.get(selected.node)?.box : scene.boxes[scene.places.get(selected?.box)]?.parent;
  let opened = false;
  for (; b >= 0; b = scene.boxes[b].parent) opened = state.shut.delete(scene.boxes[b].key) || opened;
  return opened;
}

function foldAll(shut) {
  state.shut = shut ? new Set(scene.boxes.filter((b) => b.parent >= 0 || b.kind !== "column").map((b) => b.key)) : new Set();
  if (!shut && scene.nodes.length > VISIBLE_LIMIT) {
    state.shut = outermost(scene, VISIBLE_LIMIT);
    return refresh().then(() => tell(`${plural(state.shut.size, "box")} stay collapsed: ${VISIBLE_LIMIT} things are laid out at once, no more.`));
  }
  return refresh();
}
