// The pointer over the picture.
function under(target) {
  const group = target.closest?.(".item[id]");
  return group ? picture.visible.items[Number(group.id.slice(1))] : null;
}

svg.addEventListener("click", (event) => {
  if (camera.moved) return;
  const folding = event.target.closest("[data-fold]");
  if (folding) {
    fold(Number(folding.dataset.fold));
    return;
  }
  const item = under(event.target);
  const box = event.target.closest("[data-box]");
  if (item) chooseItem(item);
  else if (box && event.target.matches(".title")) choose({ box: scene.boxes[box.dataset.box].key });
  else choose(null);
});

svg.addEventListener("dblclick", (event) => {
  const item = under(event.target);
  const box = event.target.closest("[data-box]");
  if (item?.shut !== undefined) fold(item.shut);
  else if (!item && box) fold(Number(box.dataset.box));
});

let pointed = null;
svg.addEventListener("pointerover", (event) => {
  const item = event.pointerType === "touch" ? null : under(event.target);
  if (item === pointed) return;
  pointed = item;
  mark(item);
});
svg.addEventListener("pointerleave", () => {
  pointed = null;
  mark();
});
