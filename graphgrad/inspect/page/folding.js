// Boxes collapse and expand.
function where(key) {
  const b = scene.places.get(key);
  const item = picture.visible.byKey.get(`b${b}`);
  if (item) return [item.x - item.w / 2, item.y - item.h / 2];
  const box = picture.boxes.get(b);
  return box ? [box.x, box.y] : undefined;
}

function fold(b) {
  const { key, title } = scene.boxes[b];
  const open = state.shut.delete(key);
  if (!open) state.shut.add(key);
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
  if (!shut && scene.nodes.length > VISIBLE_LIMIT) state.shut = outermost(scene, VISIBLE_LIMIT);
  return refresh();
}
