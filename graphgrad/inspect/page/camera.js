// Pan and zoom: wheel, drag, two fingers, buttons, keys. In a frame of another page the wheel alone
// scrolls that page, as one finger does.
const framed = window.parent !== window;
document.documentElement.classList.toggle("framed", framed);

const READABLE = 0.8; // of the size in which text is written
const SMALL = 0.75; // still to be read, where that shows a picture in its whole width
const bounded = (k) => Math.min(8, Math.max(0.02, k));

class Camera {
  constructor(svg, world, onmove, onled) {
    Object.assign(this, { svg, world, onmove, onled, x: 0, y: 0, k: 1 });
    this.fingers = new Map();
    this.moved = false;
    svg.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    svg.addEventListener("pointerdown", (event) => this.down(event));
    svg.addEventListener("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, (event) => this.up(event));
  }

  // A move that another pane follows.
  led(move) {
    const was = { x: this.x, y: this.y, k: this.k };
    move();
    this.onled(was);
  }

  set(x, y, k) {
    Object.assign(this, { x, y, k: bounded(k) });
    this.world.querySelector(".heads")?.style.setProperty("--reach", Math.max(1, 1 / this.k));
    this.world.setAttribute("transform", `translate(${this.x.toFixed(2)} ${this.y.toFixed(2)}) scale(${this.k.toFixed(4)})`);
    this.svg.classList.toggle("far", this.k < 0.45);
    this.svg.classList.toggle("close", this.k >= SMALL);
    this.onmove();
  }

  zoom(factor, px, py) {
    const { width, height } = this.svg.getBoundingClientRect();
    const [cx, cy] = [px ?? width / 2, py ?? height / 2];
    const k = bounded(this.k * factor);
    this.set(cx - ((cx - this.x) * k) / this.k, cy - ((cy - this.y) * k) / this.k, k);
  }

  // All of a picture, not larger than life; returns how large.
  fit({ width, height }, most = 1.25) {
    const room = this.svg.getBoundingClientRect();
    const k = Math.min(most, (room.width - 32) / width, (room.height - 32) / height);
    this.set((room.width - width * k) / 2, (room.height - height * k) / 2, k);
    return this.k;
  }

  // As much of a picture as can be read: all of it, or its whole width, or its upper left part, with what stands first in it.
  read(picture, most = 1.25) {
    const { width, height, boxes, visible } = picture;
    const room = this.svg.getBoundingClientRect();
    const wide = (room.width - 32) / width;
    const whole = Math.min(wide, (room.height - 32) / height);
    if (whole >= SMALL) return this.fit(picture, most);
    const k = Math.max(wide >= SMALL ? SMALL : READABLE, Math.min(1, wide, most));
    const cut = width * k > room.width;
    const first = [...boxes.values()].reduce((a, b) => (a && a.x <= b.x ? a : b), null);
    const top = visible.items.reduce((a, b) => (a.column < b.column || (a.column === b.column && a.y <= b.y) ? a : b));
    const seen = top.x * k < 0.7 * room.width || (first && (first.x + first.w) * k + 16 <= room.width);
    const left = cut ? (seen ? 16 : room.width / 2 - top.x * k) : (room.width - width * k) / 2;
    const above = cut && first && first.y * k > room.height / 5 ? first.y * k : 0;
    this.set(left, height * k > room.height ? 16 - above : (room.height - height * k) / 2, k);
    return this.k;
  }

  centre(x, y, scale = Math.max(this.k, 0.7)) {
    const { width, height } = this.svg.getBoundingClientRect();
    const k = bounded(scale);
    this.set(width / 2 - x * k, height / 2 - y * k, k);
  }

  // What there is room for is moved into sight.
  keep({ width, height }) {
    const room = this.svg.getBoundingClientRect();
    const within = (at, length, all) => (length + 32 <= all ? Math.min(Math.max(at, 16), all - length - 16) : at);
    this.set(within(this.x, width * this.k, room.width), within(this.y, height * this.k, room.height), this.k);
  }

  pan(dx, dy) {
    this.set(this.x + dx, this.y + dy, this.k);
  }

  wheel(event) {
    if (framed && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const { left, top } = this.svg.getBoundingClientRect();
    const unit = event.deltaMode === 1 ? 18 : event.deltaMode === 2 ? 300 : 1;
    const step = Math.max(-240, Math.min(240, event.deltaY * unit));
    this.led(() => this.zoom(Math.exp(-step * (event.ctrlKey ? 0.01 : 0.002)), event.clientX - left, event.clientY - top));
  }

  down(event) {
    if (event.button !== 0) return;
    this.fingers.set(event.pointerId, [event.clientX, event.clientY]);
    this.moved = this.fingers.size > 1;
  }

  drag(event) {
    const was = this.fingers.get(event.pointerId);
    if (!was) return;
    const now = [event.clientX, event.clientY];
    if (this.fingers.size === 1) {
      if (!this.moved && Math.hypot(now[0] - was[0], now[1] - was[1]) < 4) return;
      this.grab(event.pointerId);
      this.led(() => this.pan(now[0] - was[0], now[1] - was[1]));
    } else {
      const other = [...this.fingers].find(([id]) => id !== event.pointerId)[1];
      const span = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
      const { left, top } = this.svg.getBoundingClientRect();
      this.led(() => {
        this.zoom(span(now) / span(was), (now[0] + other[0]) / 2 - left, (now[1] + other[1]) / 2 - top);
        this.pan((now[0] - was[0]) / 2, (now[1] - was[1]) / 2);
      });
    }
    this.fingers.set(event.pointerId, now);
  }

  // Held from the first move on, so that a click that does not move reaches what it is on.
  grab(pointer) {
    this.moved = true;
    this.svg.setPointerCapture(pointer);
    this.svg.classList.add("dragged");
  }

  up(event) {
    this.fingers.delete(event.pointerId);
    this.svg.classList.remove("dragged");
  }
}
