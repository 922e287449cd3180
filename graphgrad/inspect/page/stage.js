// What the page holds, and how it comes to be drawn.
const OPEN_AIM = 120;
const PATIENCE = 20000;
const byId = (id) => document.getElementById(id);
const svg = byId("picture");

const state = {
  step: data.compare ? data.frames.length - 1 : 0,
  compare: data.compare,
  shut: new Set(),
  overlay: null,
  selected: null, // {node} or {box: key}
  hits: [],
  hit: -1,
};
const overlays = data.overlays.map(({ name, rows, combine, unit }) => Object.assign(new Overlay(name, rows), { combine, unit }));
const picture = new Picture(svg);
const minimap = new Minimap(byId("map"), (x, y) => camera.centre(x, y, camera.k));
const camera = new Camera(svg, picture.world, () => minimap.follow(camera));
let scene;
let search;
let turn = 0;
const seen = new Set(); // steps that were shown, whose boxes stand as they were left

const panel = new Panel(byId("panel"), {
  node: (n) => choose({ node: n }, true),
  box: (b) => choose({ box: scene.boxes[b].key }, true),
  fold: (b) => fold(b),
  home: () => choose(null),
});

function newScene() {
  const first = scene === undefined;
  const fresh = !seen.has(state.step);
  const frames = [...data.frames];
  if (byId("bypassed").checked && data.bypass) frames[data.bypass.of] = data.bypass.frame;
  scene = new Scene(state.step, state.compare, frames);
  if (state.compare) quieten(scene);
  search = searcher(scene);
  if (fresh) scene.shut.forEach((key) => state.shut.add(key));
  seen.add(state.step);
  if (first) {
    byId("saved").checked = scene.nodes.length <= LABEL_LIMIT;
  }
  const named = data.frames.length > 1 ? `${data.frames[state.step].title}: ` : "";
  byId("count").textContent = `${named}${scene.counts.join(", ")}`;
  showStep();
  find(byId("query").value, false);
}

// The boxes to collapse so that not more than about OPEN_AIM things are seen: outer ones open first.
function outermost(of, aim = OPEN_AIM) {
  const open = new Set([...of.boxes.keys()].filter((b) => of.boxes[b].parent < 0));
  const seen = (b) => of.boxes[b].nodes.length + of.boxes[b].inner.length;
  let level = [...open];
  let count = level.reduce((sum, b) => sum + seen(b), 0);
  while (level.length) {
    level = level.flatMap((b) => of.boxes[b].inner);
    count += level.reduce((sum, b) => sum + seen(b) - 1, 0);
    if (count > aim) break;
    level.forEach((b) => open.add(b));
  }
  return new Set(of.boxes.filter((_, i) => !open.has(i)).map((box) => box.key));
}

const visibleNow = () =>
  new Visible(scene, {
    shut: state.shut,
    saved: byId("saved").checked,
    derived: byId("derived").checked,
    types: byId("types").checked,
    values: state.overlay,
  });

// Lay out and draw. anchor: () -> [x, y] of what stays where it is on the screen; null: fit all.
async function refresh(anchor = null) {
  const mine = ++turn;
  const held = anchor?.();
  let visible = visibleNow();
  const count = visible.items.filter((item) => !item.copy).length;
  if (count > VISIBLE_LIMIT && visible.items.some((i) => i.box >= 0 && scene.boxes[i.box].parent >= 0)) {
    state.shut = outermost(scene);
    keepOpen(state.selected);
    visible = visibleNow();
  }
  document.documentElement.dataset.state = "laying out";
  const json = await layoutOf(visible, mine);
  if (!json) return;
  const layout = placed(visible, json);
  const crowded = placeLabels(visible, layout.boxes);
  picture.show(visible, layout);
  for (const link of crowded) picture.world.querySelector(`.word[data-link="${link}"]`).classList.add("crowded");
  minimap.show(picture);
  shown(held && anchor(), held);
}

// Graphviz's answer; nothing where it failed, or where something else is to be shown by now.
async function layoutOf(visible, mine) {
  const wait = setTimeout(() => note(`Laying out ${plural(visible.items.length, "box")}\u2026`, true), 250);
  const end = setTimeout(() => engine.stop(), PATIENCE);
  try {
    const started = performance.now();
    const json = await engine.layout(dotOf(visible));
    document.documentElement.dataset.layout = Math.round(performance.now() - started);
    if (mine === turn) note("");
    return mine === turn ? json : null;
  } catch (error) {
    if (mine === turn) failed(error, visible);
    return null;
  } finally {
    clearTimeout(wait);
    clearTimeout(end);
  }
}

function shown(now, held) {
  svg.classList.toggle("overlaid", state.overlay !== null);
  state.overlay?.paint(picture);
  mark();
  if (now && held) camera.pan((held[0] - now[0]) * camera.k, (held[1] - now[1]) * camera.k);
  else camera.read(picture);
  document.documentElement.dataset.state = "ready";
}

// Layout failed or took too long: once more with all but the outermost boxes collapsed.
function failed(error, visible) {
  const shut = outermost(scene, 60);
  const worth = visible.items.length > 60 && [...shut].some((key) => !state.shut.has(key));
  if (!worth) {
    note(`No layout: ${error.message}`);
    document.documentElement.dataset.state = "failed";
    return;
  }
  state.shut = shut;
  say(`Layout did not end (${error.message}); boxes were collapsed.`);
  refresh();
}

function note(message, stoppable = false) {
  byId("note").textContent = message;
  byId("note").hidden = !message;
  byId("stop").hidden = !stoppable;
}

// A note that goes away.
function tell(message) {
  note(message);
  say(message);
  setTimeout(() => byId("note").textContent === message && note(""), 4000);
}

// Default gradients are no part of what is compared.
function quieten(of) {
  for (const n of of.nodes) if (defaults.has(n)) of.at.get(n).status = "";
  for (const edge of of.edges) if (defaults.has(edge.target)) edge.status = "";
}

function say(message) {
  byId("said").textContent = message;
}
