// What the page holds, and how it comes to be drawn.
const OPEN_AIM = 120;
const PATIENCE = 20000;
const byId = (id) => document.getElementById(id);

const state = {
  step: data.panes ? 1 : data.compare ? data.frames.length - 1 : 0,
  compare: data.compare,
  panes: data.panes, // whether the step before stands beside the step
  shut: new Set(),
  overlay: null,
  selected: null, // {node} or {box: key}
  hits: [],
  hit: -1,
};
const overlays = data.overlays.map(({ name, rows, combine, unit }) => Object.assign(new Overlay(name, rows), { combine, unit }));
const main = new Pane(byId("pane"), "i", engine);
const other = new Pane(byId("other"), "j", new Engine()); // to the left of it, where there are two
const panes = () => (state.panes ? [other, main] : [main]);
let active = main;
let turn = 0;
const seen = new Set(); // steps that were shown, whose boxes stand as they were left

const panel = new Panel(byId("panel"), {
  node: (n) => choose({ node: n }, true),
  box: (b) => choose({ box: active.scene.boxes[b].key }, true),
  fold: (b) => fold(b),
  home: () => choose(null),
});

function newScene() {
  const first = main.scene === undefined;
  const frames = [...data.frames];
  if (byId("bypassed").checked && data.bypass) frames[data.bypass.of] = { ...data.bypass.frame, title: frames[data.bypass.of].title };
  const [before, after] = [frames[state.step - 1], frames[state.step]];
  const marked = state.compare && before !== undefined;
  if (state.panes) other.take(new Scene(before, { beside: marked && after }));
  main.take(new Scene(after, marked ? { [state.panes ? "beside" : "over"]: before } : {}));
  panes().forEach(({ scene }, i, { length }) => {
    if (marked) quieten(scene);
    const step = state.step + 1 + i - length;
    if (!seen.has(step)) scene.shut.forEach((key) => state.shut.add(key));
    seen.add(step);
  });
  if (first) byId("saved").checked = panes().every(({ scene }) => scene.nodes.length <= LABEL_LIMIT);
  const named = data.frames.length > 1 ? `${main.scene.title}: ` : "";
  byId("count").textContent = state.panes ? "" : `${named}${main.scene.counts.join(", ")}`;
  showStep();
  showCaptions();
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
  return of.boxes.filter((_, i) => !open.has(i)).map((box) => box.key);
}

const outermostOfAll = (aim) => new Set(panes().flatMap(({ scene }) => outermost(scene, aim)));

function isTooMuch({ items, scene }) {
  const count = items.filter((item) => !item.copy).length;
  return count > VISIBLE_LIMIT && items.some((i) => i.box >= 0 && scene.boxes[i.box].parent >= 0);
}

// Lay out and draw. anchor: pane -> [x, y] of what stays where it is on the screen; null: fit all.
async function refresh(anchor = null) {
  const mine = ++turn;
  const held = panes().map((pane) => anchor?.(pane));
  let visible = panes().map((pane) => pane.visible());
  if (visible.some(isTooMuch)) {
    state.shut = outermostOfAll();
    keepOpen(state.selected);
    visible = panes().map((pane) => pane.visible());
  }
  document.documentElement.dataset.state = "laying out";
  const drawn = await Promise.all(panes().map((pane, i) => pane.lay(visible[i])));
  if (mine !== turn || drawn.includes(false)) return;
  mark();
  const moved = panes().map((pane, i) => held[i] && anchor(pane) && [held[i], anchor(pane)]);
  if (!moved.some(Boolean)) readAll();
  panes().forEach(({ camera }, i) => {
    if (!moved[i]) return;
    const [was, now] = moved[i];
    camera.pan((was[0] - now[0]) * camera.k, (was[1] - now[1]) * camera.k);
  });
  document.documentElement.dataset.state = "ready";
}

// Layout failed or took too long: once more with all but the outermost boxes collapsed.
function failed(error, pane, visible) {
  const shut = outermost(pane.scene, 60);
  const worth = visible.items.length > 60 && shut.some((key) => !state.shut.has(key));
  if (!worth) {
    note(`No layout: ${error.message}`);
    document.documentElement.dataset.state = "failed";
    return;
  }
  state.shut = outermostOfAll(60);
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
