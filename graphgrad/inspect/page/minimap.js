// All of the picture, small, with a frame around what is seen; it shows where that is not all.
class Minimap {
  constructor(root, go) {
    this.root = root;
    this.frame = draw("rect", { class: "seen" });
    this.size = null;
    const lead = (event) => {
      const { left, top, width, height } = root.getBoundingClientRect();
      go(((event.clientX - left) / width) * this.size[0], ((event.clientY - top) / height) * this.size[1]);
    };
    root.addEventListener("pointerdown", (event) => {
      root.setPointerCapture(event.pointerId);
      lead(event);
    });
    root.addEventListener("pointermove", (event) => root.hasPointerCapture(event.pointerId) && lead(event));
  }

  show({ visible, boxes, width, height }) {
    this.size = [width, height];
    const scale = (innerWidth < 700 ? 90 : 140) / Math.max(width, height);
    this.root.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.root.setAttribute("preserveAspectRatio", "none");
    this.root.setAttribute("width", Math.max(32, Math.round(width * scale)));
    this.root.setAttribute("height", Math.max(32, Math.round(height * scale)));
    const { scene, items } = visible;
    const shapes = [];
    for (const [b, { x, y, w, h }] of boxes) {
      const { kind, column, owner } = scene.boxes[b];
      if (kind === "column" || owner >= 0) shapes.push(draw("rect", { x, y, width: w, height: h, class: `${kind} column${column % 2} ${scene.colourOf(owner)}` }));
    }
    for (const column of [0, 1]) {
      const d = items.filter((item) => item.column % 2 === column).map(({ x, y, w, h }) => `M${x - w / 2} ${y - h / 2}h${w}v${h}h${-w}Z`);
      shapes.push(draw("path", { d: d.join(""), class: `things column${column}` }));
    }
    this.root.replaceChildren(...shapes, this.frame);
  }

  follow({ svg, x, y, k }) {
    if (!this.size) return;
    const room = svg.getBoundingClientRect();
    const [left, top, right, bottom] = [-x / k, -y / k, (room.width - x) / k, (room.height - y) / k];
    const [width, height] = this.size;
    const all = left <= 2 && top <= 2 && right >= width - 2 && bottom >= height - 2;
    this.root.toggleAttribute("hidden", all);
    const clip = (value, end) => Math.min(end, Math.max(0, value));
    const [x0, y0, x1, y1] = [clip(left, width), clip(top, height), clip(right, width), clip(bottom, height)];
    for (const [name, value] of Object.entries({ x: x0, y: y0, width: x1 - x0, height: y1 - y0 })) this.frame.setAttribute(name, value.toFixed(1));
  }
}
