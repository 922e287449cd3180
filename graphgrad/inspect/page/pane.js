// A pane: one scene, drawn, with its camera and its map. A page has one, or two side by side.
class Pane {
  constructor(root, letter, engine) {
    this.root = root;
    this.letter = letter; // the ids of its items begin with it
    this.svg = root.querySelector(".picture");
    this.engine = engine;
    this.picture = new Picture(this.svg, letter);
    this.minimap = new Minimap(root.querySelector(".map"), (x, y) => this.camera.led(() => this.camera.centre(x, y, this.camera.k)));
    this.camera = new Camera(this.svg, this.picture.world, () => this.minimap.follow(this.camera), (was) => follow(this, was));
    this.turn = 0;
  }

  take(scene) {
    this.scene = scene;
    this.search = searcher(scene);
  }

  visible() {
    return new Visible(this.scene, {
      shut: state.shut,
      saved: byId("saved").checked,
      derived: byId("derived").checked,
      types: byId("types").checked,
      values: state.overlay,
    });
  }

  // Lay out and draw; whether it could be done, and nothing else was asked for meanwhile.
  async lay(visible) {
    const mine = ++this.turn;
    const json = await this.layoutOf(visible, mine);
    if (!json) return false;
    const layout = placed(visible, json);
    const crowded = placeLabels(visible, layout);
    this.picture.show(visible, layout);
    for (const link of crowded) this.picture.world.querySelector(`.word[data-link="${link}"]`).classList.add("crowded");
    this.minimap.show(this.picture);
    this.svg.classList.toggle("overlaid", state.overlay !== null);
    state.overlay?.paint(this.picture);
    return true;
  }

  // Graphviz's answer; nothing where it failed, or where something else is to be shown by now.
  async layoutOf(visible, mine) {
    const wait = setTimeout(() => note(`Laying out ${plural(visible.items.length, "box")}\u2026`, true), 250);
    const end = setTimeout(() => this.engine.stop(), PATIENCE);
    try {
      const started = performance.now();
      const json = await this.engine.layout(dotOf(visible));
      document.documentElement.dataset.layout = Math.round(performance.now() - started);
      if (mine === this.turn) note("");
      return mine === this.turn ? json : null;
    } catch (error) {
      if (mine === this.turn) failed(error, this, visible);
      return null;
    } finally {
      clearTimeout(wait);
      clearTimeout(end);
    }
  }

  // What is drawn for a node or a box, by whatever row another pane has for the node.
  itemOf(selected) {
    const { visible } = this.picture;
    if (!visible || !selected) return undefined;
    if (selected.node === undefined) return visible.byKey.get(`b${this.scene.places.get(selected.box)}`);
    const n = this.scene.rowOf(selected.node);
    return visible.byKey.get(`n${n}`) ?? visible.items.find((i) => i.node === n) ?? visible.inlined.get(n);
  }

  // What an item is chosen as.
  chosenAs(item) {
    return item.node === undefined ? { box: this.scene.boxes[item.shut].key } : { node: item.node };
  }

  // Where a box stands, open or collapsed.
  whereIs(key) {
    const b = this.scene.places.get(key);
    const item = this.picture.visible?.byKey.get(`b${b}`);
    if (item) return [item.x - item.w / 2, item.y - item.h / 2];
    const box = this.picture.boxes?.get(b);
    return box ? [box.x, box.y] : undefined;
  }

  // Bring what is chosen into sight, where it is not.
  bring(selected) {
    const { camera, picture, scene, svg } = this;
    const item = this.itemOf(selected);
    if (item) {
      const { width, height } = svg.getBoundingClientRect();
      const [sx, sy] = [item.x * camera.k + camera.x, item.y * camera.k + camera.y];
      const inside = sx > 60 && sy > 40 && sx < width - 60 && sy < height - 40;
      if (!inside || camera.k < 0.5) camera.centre(item.x, item.y);
    } else if (selected?.box) {
      const box = picture.boxes.get(scene.places.get(selected.box));
      if (box) camera.centre(box.x + box.w / 2, box.y + box.h / 2);
    }
  }

  // Classes of what is selected, found, and related to what is in the middle of attention.
  mark(centre, selected, hits) {
    const { picture, scene } = this;
    if (!picture.visible) return;
    const related = centre?.node !== undefined && scene.at.has(centre.node) ? scene.related(centre.node) : null;
    const lit = new Set();
    for (const item of picture.visible.items) {
      const group = picture.nodes.get(item.key);
      const inside = item.node === undefined ? this.insideOf(item, related, hits) : [related?.has(item.node), hits.has(item.node)];
      if (inside[0]) lit.add(item);
      group.classList.toggle("lit", Boolean(inside[0]));
      group.classList.toggle("hit", Boolean(inside[1]));
      group.classList.toggle("selected", item === selected);
    }
    for (const group of picture.world.querySelectorAll(".link, .word")) {
      const { a, b } = picture.visible.links[group.dataset.link];
      group.classList.toggle("lit", lit.has(a) && lit.has(b));
      group.classList.toggle("near", centre !== undefined && (a === centre || b === centre));
    }
    for (const group of picture.world.querySelectorAll(".box")) {
      group.classList.toggle("selected", scene.boxes[group.dataset.box].key === state.selected?.box);
    }
    picture.world.classList.toggle("dimmed", related !== null);
    if (selected) this.svg.setAttribute("aria-activedescendant", `${this.letter}${selected.id}`);
    else this.svg.removeAttribute("aria-activedescendant");
  }

  insideOf(item, related, hits) {
    if (item.shut === undefined) return [false, false];
    const shows = (n) => this.picture.visible.rep[this.scene.at.get(n)?.box] === item.shut;
    return [related && [...related].some(shows), [...hits].some(shows)];
  }
}
