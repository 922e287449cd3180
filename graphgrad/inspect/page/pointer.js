// The pointer over the pictures.
function listen(pane) {
  const { svg } = pane;
  let pointed = null;
  const under = (target) => {
    const group = target.closest?.(".item[id]");
    return group ? pane.picture.visible.items[Number(group.id.slice(1))] : null;
  };

  for (const name of ["pointerdown", "focusin"]) svg.addEventListener(name, () => pane === active || turnTo(pane));
  svg.addEventListener("click", (event) => {
    if (pane.camera.moved) return;
    const folding = event.target.closest("[data-fold]");
    if (folding) {
      fold(Number(folding.dataset.fold), pane);
      return;
    }
    const item = under(event.target);
    const box = event.target.closest("[data-box]");
    if (item) choose(pane.chosenAs(item));
    else if (box && event.target.matches(".title")) choose({ box: pane.scene.boxes[box.dataset.box].key });
    else choose(null);
  });
  svg.addEventListener("dblclick", (event) => {
    const item = under(event.target);
    const box = event.target.closest("[data-box]");
    if (item?.shut !== undefined) fold(item.shut, pane);
    else if (!item && box) fold(Number(box.dataset.box), pane);
  });
  svg.addEventListener("pointerover", (event) => {
    const item = event.pointerType === "touch" ? null : under(event.target);
    if (item === pointed) return;
    pointed = item;
    mark(item, pane);
  });
  svg.addEventListener("pointerleave", () => {
    pointed = null;
    mark();
  });
}

listen(main);
listen(other);
