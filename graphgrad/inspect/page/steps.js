// Frames are steps of a slider.
function showStep() {
  byId("steps").hidden = data.frames.length < 2;
  byId("step").max = data.frames.length - 1;
  byId("step").value = state.step;
  byId("line").hidden = data.frames.length < 3;
  if (!byId("line").childElementCount) showLine();
  [...byId("line").children].forEach((li, i) => li.firstChild.setAttribute("aria-current", i === state.step ? "step" : "false"));
  byId("step-name").textContent = `${state.step + 1} of ${data.frames.length}: ${data.frames[state.step].title}`;
  byId("compare").checked = state.compare;
  byId("step-back").disabled = state.step === 0;
  byId("step-on").disabled = state.step === data.frames.length - 1;
  const shows = data.bypass?.of === state.step;
  byId("bypassed").disabled = !shows;
  byId("bypassed").closest("label").title = shows ? "" : whyNoDefaults();
  const counts = ["added", "removed", "changed"].map((s) => [s, scene.nodes.filter((n) => scene.at.get(n).status === s).length]).filter(([, count]) => count);
  const comparing = state.compare && state.step > 0;
  byId("changes").replaceChildren(...(comparing ? counts.map(([s, count]) => make("span", { class: `change ${s}` }, `${STATUS_SIGNS[s]} ${count} ${s}`)) : []));
  if (comparing && !counts.length) byId("changes").append("nothing changed");
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
  state.step = Math.min(data.frames.length - 1, Math.max(0, step));
  state.compare = compare;
  newScene();
  showPanel();
  return refresh();
}
