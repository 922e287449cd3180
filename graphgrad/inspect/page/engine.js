// Graphviz in a worker. A script of its own that comes before the data: Graphviz gets ready while the
// page reads these.
"use strict";

const WORK = `
const options = { format: "json0" };
const ready = Viz.instance().then((viz) => {
  viz.renderString("digraph{newrank=true;subgraph cluster{label=a;a->b[label=a]}a->c->b{rank=same;a;c}}", options);
  return viz; // what a layout takes is compiled by now
});
onmessage = async ({ data: [turn, dot] }) => {
  try {
    const viz = await ready;
    postMessage([turn, viz.renderString(dot, options), null]);
  } catch (error) {
    postMessage([turn, null, String((error && error.message) || error)]);
  }
};`;

// Runs Graphviz beside the page; where no worker can be started, in the page itself.
class Engine {
  constructor() {
    this.turn = 0;
    this.worker = null;
    this.waiting = null;
    this.main = null;
  }

  // Whether a worker could be started.
  prepare() {
    try {
      this.worker ??= this.start();
      return true;
    } catch {
      return false;
    }
  }

  start() {
    const code = document.getElementById("viz").textContent;
    const url = URL.createObjectURL(new Blob([code, WORK], { type: "text/javascript" }));
    const worker = new Worker(url);
    worker.onmessage = ({ data: [turn, json, error] }) => this.answer(turn, json, error);
    worker.onerror = (event) => {
      event.preventDefault();
      if (this.worker !== worker) return;
      if (this.waiting) this.answer(this.turn, null, event.message || "no worker");
      else this.worker = null;
    };
    return worker;
  }

  answer(turn, json, error) {
    if (turn !== this.turn || !this.waiting) return;
    const { resolve, reject } = this.waiting;
    this.waiting = null;
    if (error === null) {
      resolve(JSON.parse(json));
      return;
    }
    this.stop(); // Graphviz may have been left in any state
    reject(new Error(error));
  }

  // The layout of a DOT text; an earlier one that is not done yet is given up.
  async layout(dot) {
    if (this.waiting) this.stop();
    this.turn += 1;
    if (this.main === null && !this.prepare()) this.main = await inPage();
    if (this.main !== null) return JSON.parse(this.main.renderString(dot, { format: "json0" }));
    return new Promise((resolve, reject) => {
      this.waiting = { resolve, reject };
      this.worker.postMessage([this.turn, dot]);
    });
  }

  stop() {
    this.worker?.terminate();
    this.worker = null;
    const { waiting } = this;
    this.waiting = null;
    waiting?.reject(new Error("stopped"));
  }
}

// The same text as a script of the page: its hash is allowed.
async function inPage() {
  const script = document.createElement("script");
  script.textContent = document.getElementById("viz").textContent;
  document.head.append(script);
  return globalThis.Viz.instance();
}

const engine = new Engine(); // of the pane that every page has
engine.prepare();
