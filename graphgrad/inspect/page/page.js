// The bar, and how it all begins.
function menu(open) {
  byId("options").hidden = !open;
  byId("options-button").setAttribute("aria-expanded", String(open));
}

function chooseOverlay(number) {
  state.overlay = number < 0 ? null : overlays[number] ?? bytesOverlay();
  byId("scale").hidden = state.overlay === null;
  byId("scale").replaceChildren(...(state.overlay?.legend() ?? []));
  return refresh(() => [0, 0]);
}

function start() {
  byId("title").textContent = data.title || "graph";
  [...overlays.map(({ name }) => name), BYTES].forEach((name, i) => byId("overlay").append(make("option", { value: i }, name)));
  byId("overlay").prepend(make("option", { value: -1, selected: true }, "by kind"));
  byId("overlay").addEventListener("change", (event) => chooseOverlay(Number(event.target.value)));
  for (const id of ["saved", "derived", "types"]) byId(id).addEventListener("change", () => refresh(() => [0, 0]));
  byId("bypassed").addEventListener("change", () => {
    newScene();
    showPanel();
    refresh(() => [0, 0]);
  });
  byId("finder").addEventListener("submit", (event) => event.preventDefault());
  byId("query").addEventListener("input", (event) => find(event.target.value));
  byId("query").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && nextHit(event.shiftKey ? -1 : 1)) active.svg.focus({ preventScroll: true });
  });
  byId("clear").addEventListener("click", () => {
    clearSearch();
    byId("query").focus();
  });
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
  byId("beside").addEventListener("change", (event) => showSideBySide(event.target.checked));
  byId("save-svg").addEventListener("click", () => saveSvg(byId("save-seen").checked));
  byId("save-png").addEventListener("click", () => savePng(byId("save-seen").checked));
  byId("save-dot").addEventListener("click", saveDot);
  byId("print").addEventListener("click", () => print());
  byId("zoom-in").addEventListener("click", () => zoom(1.25));
  byId("zoom-out").addEventListener("click", () => zoom(0.8));
  byId("zoom-fit").addEventListener("click", fitAll);
  byId("stop").addEventListener("click", () => panes().forEach(({ engine }) => engine.stop()));
  addEventListener("resize", () => panes().forEach(({ minimap, camera }) => minimap.follow(camera)));
  if ((state.panes ? innerWidth < 1200 : isNarrow()) || framed) openPanel(false);
  activate(main);
  setTheme("auto");
  newScene();
  showFailure();
  showAddressed();
  showPanel();
  refresh().then(() => state.selected && bring(state.selected));
}

// What failed is chosen, and the boxes around it are open.
function showFailure() {
  byId("failure").hidden = !data.reason;
  byId("failure").textContent = `Failed: ${data.reason}`;
  const [failed] = main.scene.failed;
  if (failed === undefined) return;
  state.selected = { node: failed };
  keepOpen(state.selected);
}

// The node that the address names is chosen, and the boxes around it are open.
function showAddressed() {
  const node = addressedNode();
  if (node === undefined) return;
  state.selected = { node };
  keepOpen(state.selected);
}

start();
