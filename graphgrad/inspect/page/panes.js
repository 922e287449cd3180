// Two panes kept in step: what one does to its picture, the other does to what both have.

const NEAR = 90; // things that stand nearer than this count alike where a pane follows

// The other pane goes where one went from a view, past the same nodes: as far, and as near.
function follow(leader, was) {
  for (const pane of panes().filter((p) => p !== leader)) {
    const pairs = standing(leader, pane);
    const [from, to] = [was, leader.camera].map((view) => across(pairs, middleOf(leader, view)));
    const [x, y] = middleOf(pane);
    pane.camera.centre(x + to[0] - from[0], y + to[1] - from[1], (pane.camera.k * leader.camera.k) / was.k);
  }
}

// The point of a picture that a view has in the middle.
function middleOf({ svg, camera }, { x, y, k } = camera) {
  const { width, height } = svg.getBoundingClientRect();
  return [(width / 2 - x) / k, (height / 2 - y) / k];
}

// Where what both panes have stands in them: [x, y, x there, y there].
function standing(here, there) {
  const found = named(there);
  return [...named(here)].filter(([name]) => found.has(name)).map(([name, { x, y }]) => [x, y, found.get(name).x, found.get(name).y]);
}

// Items by what is the same in all pictures of the page.
function named({ picture, scene }) {
  const items = (picture.visible?.items ?? []).filter((item) => !item.copy);
  return new Map(items.map((item) => [item.node === undefined ? scene.boxes[item.shut].key : scene.at.get(item.node).key, item]));
}

// A point of one picture in the other: moved as what both have is, near things above all
// (Shepard 1968, "A two-dimensional interpolation function for irregularly-spaced data").
function across(pairs, [x, y]) {
  let [dx, dy, sum] = [0, 0, 0];
  for (const [ax, ay, bx, by] of pairs) {
    const weight = 1 / ((ax - x) ** 2 + (ay - y) ** 2 + NEAR ** 2) ** 2;
    dx += weight * (bx - ax);
    dy += weight * (by - ay);
    sum += weight;
  }
  return sum ? [x + dx / sum, y + dy / sum] : [x, y];
}

// All panes as near as the one that has to stand back the most.
function fitAll() {
  const most = Math.min(...panes().map((p) => p.camera.fit(p.picture)));
  for (const { camera, picture } of panes()) camera.fit(picture, most);
}

// The first view is that of the largest picture; in the other, the same things stand in the same places.
function readAll() {
  const most = Math.min(...panes().map((p) => p.camera.read(p.picture)));
  const [leader, ...others] = panes().sort((a, b) => b.picture.width * b.picture.height - a.picture.width * a.picture.height);
  leader.camera.read(leader.picture, most);
  for (const pane of others) {
    pane.camera.centre(...across(standing(leader, pane), middleOf(leader)), most);
    pane.camera.keep(pane.picture);
  }
}

// The pane that keys and the panel are about.
function activate(pane) {
  active = pane;
  for (const { root } of [main, other]) root.classList.toggle("active", state.panes && root === pane.root);
}

// The pane that has something: the active one if it does.
function paneWith({ node, box }) {
  const has = ({ scene }) => (node === undefined ? scene.places.has(box) : scene.at.has(scene.rowOf(node)));
  return [active, ...panes()].find(has);
}

function turnTo(pane) {
  activate(pane);
  showPanel();
}

// To the other pane, and to the same node there.
function toOther() {
  if (!state.panes) return;
  turnTo(active === main ? other : main);
  active.svg.focus();
  const item = active.itemOf(state.selected);
  say(item ? describeItem(item, active.scene) : active.scene.title);
}

function showSideBySide(on) {
  state.panes = on;
  state.step = Math.max(state.step, on ? 1 : 0);
  activate(main);
  return goStep(state.step);
}

// What stands above each pane: what it is of, and what only it has.
function showCaptions() {
  byId("other").hidden = !state.panes;
  byId("panes").classList.toggle("two", state.panes);
  for (const { root, scene, svg } of panes()) {
    const caption = root.querySelector(".caption");
    caption.hidden = !state.panes;
    if (state.panes) root.setAttribute("aria-label", scene.title);
    else root.removeAttribute("aria-label");
    caption.replaceChildren(make("b", {}, scene.title), make("span", { class: "note" }, scene.counts.join(", ")), ...changesOf(scene));
    svg.setAttribute("aria-label", `Graph${state.panes ? ` \u201c${scene.title}\u201d` : ""}. Arrow keys move from node to node, Enter opens details.`);
  }
}
