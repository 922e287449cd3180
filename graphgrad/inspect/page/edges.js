// The edges of a scene: a column for each field, since there may be very many. One of them becomes an
// object where it is asked for, the same each time.
class Edges {
  constructor() {
    [this.source, this.target, this.out, this.kind, this.tag, this.owner, this.operand, this.copy, this.status] = Array.from({ length: 9 }, () => []);
    this.made = [];
  }

  // Those of a frame; status(source, out, target) as for nodes.
  take(frame, status) {
    const [source, out, target, kind, tag, owner, operand, copies] = frame.edges;
    const copied = new Set(copies);
    for (let i = 0; i < source.length; i++) {
      const found = status(source[i], out[i], target[i]);
      if (found === null) continue;
      this.source.push(source[i]);
      this.out.push(out[i]);
      this.target.push(target[i]);
      this.kind.push(kind[i]);
      this.tag.push(tag[i]);
      this.owner.push(owner[i]);
      this.operand.push(operand[i]);
      this.copy.push(copied.has(i));
      this.status.push(found);
    }
  }

  get length() {
    return this.source.length;
  }

  at(i) {
    this.made[i] ??= {
      source: this.source[i], out: this.out[i], target: this.target[i], kind: EDGES[this.kind[i]], tag: data.strings[this.tag[i]],
      owner: this.owner[i], operand: data.strings[this.operand[i]], copy: this.copy[i], status: this.status[i],
    };
    return this.made[i];
  }

  *[Symbol.iterator]() {
    for (let i = 0; i < this.length; i++) yield this.at(i);
  }
}
