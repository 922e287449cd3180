// What leaves the page: pictures as SVG and PNG, the graph as DOT, a print, and a link to a node.
const DRAWN = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap", "stroke-linejoin",
  "opacity", "paint-order", "font-family", "font-size", "font-weight", "text-anchor", "text-decoration-line",
];
const LARGEST = 8192; // pixels of a PNG in either direction

// The drawing by itself, its colours written on it: the whole, or the part that is seen. Two panes
// stand side by side, each under its title.
function standalone(seen) {
  const parts = panes().map((pane) => part(pane, seen));
  const copy = parts.length > 1 ? abreast(parts) : parts[0];
  const title = draw("title");
  title.textContent = data.title || "graph";
  copy.prepend(title);
  const [width, height] = ["width", "height"].map((side) => Number(copy.getAttribute(side)));
  return { text: new XMLSerializer().serializeToString(copy), width, height };
}

function part({ svg, camera, picture }, seen) {
  const room = svg.getBoundingClientRect();
  const frame = seen ? [-camera.x / camera.k, -camera.y / camera.k, room.width / camera.k, room.height / camera.k] : [-12, -12, picture.width + 24, picture.height + 24];
  const [x, y, width, height] = frame.map((v) => Math.round(v * 100) / 100);
  return draw("svg", { viewBox: `${x} ${y} ${width} ${height}`, width, height }, ground({ x, y, width, height }), drawnCopy(picture.world));
}

const ground = (frame) => draw("rect", { ...frame, fill: getComputedStyle(document.body).backgroundColor });

function abreast(parts) {
  const head = 32;
  const copy = draw("svg");
  let [width, height] = [0, 0];
  parts.forEach((inner, i) => {
    const caption = draw("text", { x: width + 12, y: 21, "font-family": FONT, "font-size": 14, "font-weight": 600, fill: getComputedStyle(document.body).color });
    caption.textContent = panes()[i].scene.title;
    inner.setAttribute("x", width);
    inner.setAttribute("y", head);
    copy.append(caption, inner);
    width += Number(inner.getAttribute("width"));
    height = Math.max(height, head + Number(inner.getAttribute("height")));
  });
  copy.prepend(ground({ width, height }));
  for (const [name, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, width, height })) copy.setAttribute(name, value);
  return copy;
}

// A copy of a drawn element without what is hidden and what is to be clicked.
function drawnCopy(element) {
  const copy = element.cloneNode(false);
  for (const name of ["transform", "id", "class", "tabindex", "role"]) if (name !== "transform" || element.parentNode.matches(".picture")) copy.removeAttribute(name);
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
  download(new Blob(panes().map(writtenDot), { type: "text/vnd.graphviz" }), "gv");
}

function writtenDot({ picture }) {
  const { scene, items, links, open } = picture.visible;
  const quoted = (s) => `"${s.replace(/[\\"]/g, "\\$&").replace(/\n/g, "\\n")}"`;
  const inside = grouped(items, (item) => item.box);
  const name = [data.title || "graph", ...(state.panes ? [scene.title] : [])].join(": ");
  const rows = [`digraph ${quoted(name)} {`, "graph [newrank=true]; node [shape=box];"];
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

// A print has all of the pictures on one page.
addEventListener("beforeprint", () => {
  for (const { svg, picture } of panes()) {
    svg.setAttribute("viewBox", `-8 -8 ${picture.width + 16} ${picture.height + 16}`);
    picture.world.removeAttribute("transform");
    svg.classList.remove("far");
  }
});
addEventListener("afterprint", () => {
  for (const { svg, camera } of panes()) {
    svg.removeAttribute("viewBox");
    camera.set(camera.x, camera.y, camera.k);
  }
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
  return name ? panes().flatMap(({ scene }) => scene.nodes).find((n) => nameOf(n) === name) : undefined;
}

addEventListener("hashchange", () => {
  const node = addressedNode();
  if (node !== undefined) choose({ node }, true);
});
