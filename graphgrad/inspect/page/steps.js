// Frames are steps of a slider.
function showStep() {
  const several = data.frames.length > (state.panes ? 2 : 1); // there is something to step through
  byId("steps").hidden = data.frames.length < 2;
  for (const id of ["step-back", "step", "step-on", "step-name"]) byId(id).hidden = !several;
  byId("step").min = firstStep();
  byId("step").max = data.frames.length - 1;
  byId("step").value = state.step;
  byId("line").hidden = data.frames.length < 3;
  if (!byId("line").childElementCount) showLine();
  [...byId("line").children].forEach((li, i) => li.firstChild.setAttribute("aria-current", i === state.step ? "step" : "false"));
  byId("step-name").textContent = `${state.step + 1} of ${data.frames.length}: ${data.frames[state.step].title}`;
  byId("compare").checked = state.compare;
  byId("compare-words").textContent = state.panes ? "Mark what differs" : "Compare with step before";
  byId("beside").checked = state.panes;
  byId("step-back").disabled = state.step === firstStep();
  byId("step-on").disabled = state.step === data.frames.length - 1;
  const shows = data.bypass && panes().some((_, i, { length }) => data.bypass.of === state.step + 1 + i - length);
  byId("bypassed").disabled = !shows;
  byId("bypassed").closest("label").title = shows ? "" : whyNoDefaults();
  byId("changes").replaceChildren(...(state.panes ? [] : changesOf(main.scene)));
}

const firstStep = () => (state.panes ? 1 : 0);

// How many nodes a comparison marks as what.
function changesOf(scene) {
  if (!scene.compared) return [];
  const counts = ["only", "added", "removed", "changed"].map((s) => [s, scene.nodes.filter((n) => scene.at.get(n).status === s).length]).filter(([, count]) => count);
  if (!counts.length) return [state.panes ? "nothing only here" : "nothing changed"];
  return counts.map(([s, count]) => make("span", { class: `change ${s}` }, `${STATUS_SIGNS[s]} ${count} ${statusWords(s)}`));
}

// The steps in order, each with how many nodes it leaves: where it got less, and where it did nothing.
function showLine() {
  const counts = data.frames.map(({ nodes }) => nodes.length);
  const most = Math.max(...counts, 1);
  byId("line").replaceChildren(...data.frames.map(({ title }, i) => {
    const change = i ? counts[i] - counts[i - 1] : 0;
    const said = `${title}: ${plural(counts[i], "node")}${change ? `, ${change > 0 ? "+" : "\u2212"}${Math.abs(change).toLocaleString("en")}` : ""}`;
    const bar = make("i", { "aria-hidden": "true" });
    bar.style.height = `${Math.max(2, Math.round((20 * counts[i]) / most))}px`;
    const step = make("button", { type: "button", title: said, "aria-label": said, class: change ? "" : "still", onclick: () => goStep(i) }, bar);
    return make("li", {}, step);
  }));
}

function whyNoDefaults() {
  if (data.bypass) return `Default gradients are shown at the step \u201c${data.frames[data.bypass.of].title}\u201d.`;
  return data.why_no_bypass;
}

function goStep(step, compare = state.compare) {
  state.step = Math.min(data.frames.length - 1, Math.max(firstStep(), step));
  state.compare = compare;
  newScene();
  showPanel();
  return refresh();
}
