// What leaves the page: pictures as SVG and PNG, the graph as DOT, a print, and a link to a node.
const DRAWN = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap", "stroke-linejoin",
  "opacity", "paint-order", "font-family", "font-size", "font-weight", "text-anchor", "text-decoration-line",
];
const LARGEST = 8192; // pixels of a PNG in either direction

// The drawing by itself, its colours written on it: the whole, or the part that is seen.
function standalone(seen) {
  const { width, height } = svg.getBoundingClientRect();
  const frame = seen ? [-camera.x / camera.k, -camera.y / camera.k, width / camera.k, height / camera.k] : [-12, -12, picture.width + 24, picture.height + 24];
  const [x, y, w, h] = frame.map((v) => Math.round(v * 100) / 100);
  const copy = draw("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `${x} ${y} ${w} ${h}`, width: w, height: h });
  const title = draw("title");
  title.textContent = data.title || "graph";
  copy.append(title, draw("rect", { x, y, width: w, height: h, fill: getComputedStyle(document.body).backgroundColor }), drawnCopy(picture.world));
  return { text: new XMLSerializer().serializeToString(copy), width: w, height: h };
}

// A copy of a drawn element without what is hidden and what is to be clicked.
function drawnCopy(element) {
  const copy = element.cloneNode(false);
  for (const name of ["transform", "id", "class", "tabindex", "role"]) if (name !== "transform" || element === picture.world) copy.removeAttribute(name);
  if (element.tagName !== "title" && element.tagName !== "g") {
    const style = getComputedStyle(element);
    for (const name of DRAWN) copy.setAttribute(name.replace("text-decoration-line", "text-decoration"), style.getPropertyValue(name));
  } else if (element.tagName === "g" && getComputedStyle(element).opacity !== "1") copy.setAttribute("opacity", getComputedStyle(element).opacity);
  for (const child of element.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) copy.append(child.cloneNode());
    else if (!child.classList.contains("fold") && getComputedStyle(child).display !== "none") copy.append(drawnCopy(child));
  }
  return copy;
}

function download(blob, ending) {
  const name = (data.title || "graph").replace(/[^\p{L}\p{N}_.-]+/gu, "-").slice(0, 80);
  const link = make("a", { download: `${name}.${ending}`, href: URL.createObjectURL(blob) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function saveSvg(seen) {
  download(new Blob([standalone(seen).text], { type: "image/svg+xml" }), "svg");
}

async function savePng(seen) {
  const { text, width, height } = standalone(seen);
  const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  const image = new Image();
  image.src = url;
  await image.decode();
  const scale = Math.min(2, LARGEST / width, LARGEST / height);
  const canvas = make("canvas", { width: Math.round(width * scale), height: Math.round(height * scale) });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(url);
  download(await new Promise((done) => canvas.toBlob(done, "image/png")), "png");
}

// What is drawn as DOT text, with the words on it.
function saveDot() {
  download(new Blob([writtenDot(picture.visible)], { type: "text/vnd.graphviz" }), "gv");
}

function writtenDot({ scene, items, links, open }) {
  const quoted = (s) => `"${s.replace(/[\\"]/g, "\\$&").replace(/\n/g, "\\n")}"`;
  const inside = grouped(items, (item) => item.box);
  const rows = [`digraph ${quoted(data.title || "graph")} {`, "graph [newrank=true]; node [shape=box];"];
  const write = (item) => rows.push(`n${item.id} [label=${quoted(item.lines.map(([s]) => s).join("\n"))}];`);
  const stack = scene.boxes.map((b, i) => i).filter((i) => scene.boxes[i].parent < 0 && open.has(i)).reverse();
  while (stack.length) {
    const at = stack.pop();
    if (typeof at === "string") {
      rows.push(at);
      continue;
    }
    rows.push(`subgraph cluster_${at} {`, `label=${quoted(scene.boxes[at].title)};`);
    (inside.get(at) ?? []).forEach(write);
    stack.push("}", ...scene.boxes[at].inner.filter((i) => open.has(i)).reverse());
  }
  for (const link of links) rows.push(`n${link.a.id} -> n${link.b.id} [label=${quoted(link.label ?? "")}${link.across ? ", constraint=false" : ""}];`);
  return [...rows, "}", ""].join("\n");
}

// A print has all of the picture on one page.
addEventListener("beforeprint", () => {
  svg.setAttribute("viewBox", `-8 -8 ${picture.width + 16} ${picture.height + 16}`);
  picture.world.removeAttribute("transform");
  svg.classList.remove("far");
});
addEventListener("afterprint", () => {
  svg.removeAttribute("viewBox");
  camera.set(camera.x, camera.y, camera.k);
});

// The address names the chosen node, so that it can be given to others.
const addressed = /^(file|https?):$/.test(location.protocol);

function noteAddress() {
  const { node } = state.selected ?? {};
  const name = node === undefined ? "" : `#${encodeURIComponent(nameOf(node))}`;
  if (addressed && decodeURI(location.hash) !== decodeURI(name)) history.replaceState(null, "", name || location.pathname + location.search);
}

function addressedNode() {
  const name = decodeURIComponent(location.hash.slice(1));
  return name ? scene.nodes.find((n) => nameOf(n) === name) : undefined;
}

addEventListener("hashchange", () => {
  const node = addressedNode();
  if (node !== undefined) choose({ node }, true);
});
