// What the user does, and what follows from it.
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
const overlays = data.overlays.map(({ name, rows }) => new Overlay(name, rows));
overlays.push(bytesOverlay());
const engine = new Engine();
const picture = new Picture(svg);
const camera = new Camera(svg, picture.world, () => {});
let scene;
let search;
let turn = 0;

const panel = new Panel(byId("panel"), {
  node: (n) => choose({ node: n }, true),
  box: (b) => choose({ box: scene.boxes[b].key }, true),
  fold: (b) => fold(b),
  home: () => choose(null),
});

// --- what is shown ---------------------------------------------------------------------------

function newScene() {
  const first = scene === undefined;
  scene = new Scene(state.step, state.compare);
  search = searcher(scene);
  if (first) {
    if (scene.nodes.length > VISIBLE_LIMIT) state.shut = outermost(scene);
    byId("saved").checked = scene.nodes.length <= LABEL_LIMIT;
  }
  const named = data.frames.length > 1 ? `${data.frames[state.step].title}: ` : "";
  byId("count").textContent = [
    `${named}${plural(scene.nodes.length, "node")}`,
    plural(scene.regions.length, "region"),
    `${scene.calls.length.toLocaleString("en")} spliced`,
  ].join(", ");
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
    bypassed: byId("bypassed").checked,
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
  picture.show(visible, placed(visible, json));
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
  state.overlay?.paint(picture);
  mark();
  if (now && held) camera.pan((held[0] - now[0]) * camera.k, (held[1] - now[1]) * camera.k);
  else camera.fit(picture.width, picture.height, innerWidth < 700 ? 0.35 : 0.45);
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

function say(message) {
  byId("said").textContent = message;
}

// --- collapsing ------------------------------------------------------------------------------

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

// --- choosing --------------------------------------------------------------------------------

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
  mark();
  const item = itemOf(selected);
  if (item) say(describeItem(item, scene));
  if (reveal) bring(selected, item);
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
    return byKey.get(`n${selected.node}`) ?? items.find((i) => i.node === selected.node);
  }
  return selected?.box === undefined ? undefined : byKey.get(`b${scene.places.get(selected.box)}`);
}

function showPanel() {
  const { selected } = state;
  const b = scene.places.get(selected?.box);
  if (selected?.node !== undefined && scene.at.has(selected.node)) panel.node(selected.node, scene, overlays);
  else if (b !== undefined) panel.box(b, scene, state.shut.has(selected.box));
  else panel.overview(scene);
  if (selected && innerWidth < 700) openPanel(true);
}

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
  for (const group of picture.world.querySelectorAll(".link")) {
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

// --- search ----------------------------------------------------------------------------------

function find(query, redraw = true) {
  state.hits = search(query);
  state.hit = -1;
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

// --- steps -----------------------------------------------------------------------------------

function showStep() {
  byId("steps").hidden = data.frames.length < 2;
  byId("step").max = data.frames.length - 1;
  byId("step").value = state.step;
  byId("step-name").textContent = `${state.step + 1} of ${data.frames.length}: ${data.frames[state.step].title}`;
  byId("compare").checked = state.compare;
  byId("step-back").disabled = state.step === 0;
  byId("step-on").disabled = state.step === data.frames.length - 1;
  const counts = ["added", "removed", "changed"].map((s) => [s, scene.nodes.filter((n) => scene.at.get(n).status === s).length]);
  const comparing = state.compare && state.step > 0;
  byId("changes").replaceChildren(...(comparing ? counts.map(([s, count]) => make("span", { class: `change ${s}` }, `${STATUS_SIGNS[s]} ${count} ${s}`)) : []));
}

function goStep(step, compare = state.compare) {
  state.step = Math.min(data.frames.length - 1, Math.max(0, step));
  state.compare = compare;
  newScene();
  showPanel();
  return refresh();
}

// --- keys ------------------------------------------------------------------------------------

const ARROWS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

// The item to go to from another in a direction: near ones first, joined ones before others.
function beside(from, [dx, dy]) {
  const joined = new Set();
  for (const { a, b } of picture.visible.links) if (a === from || b === from) joined.add(a === from ? b : a);
  let best = null;
  let least = Infinity;
  for (const item of picture.visible.items) {
    const [x, y] = [item.x - from.x, item.y - from.y];
    const along = x * dx + y * dy;
    const cost = (along + 2 * Math.abs(x * dy + y * dx)) * (joined.has(item) ? 0.4 : 1);
    if (item !== from && along > 4 && cost < least) [best, least] = [item, cost];
  }
  return best;
}

function arrow(direction) {
  const from = itemOf(state.selected);
  if (!from) {
    camera.pan(-60 * direction[0], -60 * direction[1]);
    return;
  }
  const to = beside(from, direction);
  if (to) chooseItem(to, true);
}

function chooseItem(item, reveal = false) {
  if (item.kind === "ghost") return choose({ node: item.of }, reveal);
  return choose(item.node === undefined ? { box: scene.boxes[item.shut].key } : { node: item.node }, reveal);
}

function toGradient() {
  const n = state.selected?.node;
  if (n === undefined) return;
  const origin = originOf(n);
  const there = origin
    ? (origin.node ?? scene.members.get(origin.region)?.at(-1))
    : (scene.derivedFrom.get(n)?.[0] ?? regionsAround(n).map((r) => scene.builtFor.get(r)?.[0]).find((m) => m !== undefined));
  if (there !== undefined) choose({ node: there }, true);
}

function toggle(id) {
  byId(id).checked = !byId(id).checked;
  byId(id).dispatchEvent(new Event("change"));
}

const KEYS = {
  "+": () => camera.zoom(1.25),
  "=": () => camera.zoom(1.25),
  "-": () => camera.zoom(0.8),
  0: () => camera.fit(picture.width, picture.height),
  s: () => toggle("saved"),
  b: () => toggle("bypassed"),
  d: () => toggle("derived"),
  y: () => toggle("types"),
  g: toGradient,
  c() {
    const b = state.selected?.node !== undefined ? scene.at.get(state.selected.node)?.box : scene.places.get(state.selected?.box);
    if (b !== undefined && !state.shut.has(scene.boxes[b].key)) fold(b);
  },
  "[": () => data.frames.length > 1 && goStep(state.step - 1),
  "]": () => data.frames.length > 1 && goStep(state.step + 1),
  "/": () => byId("query").select(),
  Escape: () => (byId("options").hidden ? choose(null) : menu(false)),
};

addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input:not([type=checkbox]), select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing) {
    if (event.key === "Escape") typing.blur();
    return;
  }
  const inPicture = svg.contains(event.target) || event.target === document.body;
  if (inPicture && event.key in ARROWS) arrow(ARROWS[event.key]);
  else if (inPicture && event.key === "Enter") enter(event.target);
  else if (event.key in KEYS) KEYS[event.key]();
  else return;
  event.preventDefault();
});

function enter(target) {
  const folding = target.closest?.("[data-fold]");
  const item = itemOf(state.selected);
  if (folding) fold(Number(folding.dataset.fold));
  else if (item?.shut !== undefined) fold(item.shut);
  else if (state.selected) openPanel(true);
  else if (picture.visible?.items.length) chooseItem(picture.visible.items[0], true);
}

// --- pointer ---------------------------------------------------------------------------------

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

// --- the bar ---------------------------------------------------------------------------------

function menu(open) {
  byId("options").hidden = !open;
  byId("options-button").setAttribute("aria-expanded", String(open));
}

function chooseOverlay(number) {
  state.overlay = number < 0 ? null : overlays[number];
  byId("scale").hidden = state.overlay === null;
  byId("scale").replaceChildren(...(state.overlay?.legend() ?? []));
  return refresh(() => [0, 0]);
}

function start() {
  byId("title").textContent = data.title || "graph";
  overlays.forEach(({ name }, i) => byId("overlay").append(make("option", { value: i }, name)));
  byId("overlay").prepend(make("option", { value: -1, selected: true }, "by kind"));
  byId("overlay").addEventListener("change", (event) => chooseOverlay(Number(event.target.value)));
  for (const id of ["saved", "bypassed", "derived", "types"]) byId(id).addEventListener("change", () => refresh(() => [0, 0]));
  byId("finder").addEventListener("submit", (event) => event.preventDefault());
  byId("query").addEventListener("input", (event) => find(event.target.value));
  byId("query").addEventListener("keydown", (event) => event.key === "Enter" && nextHit(event.shiftKey ? -1 : 1));
  byId("options-button").addEventListener("click", () => menu(byId("options").hidden));
  addEventListener("pointerdown", (event) => event.target.closest(".menu") || menu(false));
  byId("open-all").addEventListener("click", () => foldAll(false));
  byId("shut-all").addEventListener("click", () => foldAll(true));
  byId("theme").addEventListener("change", (event) => setTheme(event.target.value));
  byId("panel-button").addEventListener("click", () => openPanel(document.body.classList.contains("no-panel")));
  byId("step").addEventListener("input", (event) => goStep(Number(event.target.value)));
  byId("step-back").addEventListener("click", () => goStep(state.step - 1));
  byId("step-on").addEventListener("click", () => goStep(state.step + 1));
  byId("compare").addEventListener("change", (event) => goStep(state.step, event.target.checked));
  byId("zoom-in").addEventListener("click", () => camera.zoom(1.25));
  byId("zoom-out").addEventListener("click", () => camera.zoom(0.8));
  byId("zoom-fit").addEventListener("click", () => camera.fit(picture.width, picture.height));
  byId("stop").addEventListener("click", () => engine.stop());
  if (innerWidth < 700) openPanel(false);
  setTheme("auto");
  newScene();
  showPanel();
  refresh();
}

start();
