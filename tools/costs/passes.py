"""What optimising costs a node, pass by pass, and what it gives.

    python tools/costs/passes.py [--rounds 5] [--only chain] [--run]

Programs with gradients: chains of 10,000 small ops, and networks of the kinds that
tools/bench/peers.py compares. CPU microseconds a node of the program before, collector off, median
over rounds. The second table leaves out one step of the normal form at a time: by how much the
passes are quicker then, and how many nodes more are left. --run: CPU time of a run as
optimised over that of a run as built.
"""

import argparse
import gc
import statistics
import time
from collections import Counter

import numpy as np

import graphgrad as gg
from graphgrad.bench.workloads import Sizes, chain, deep_network, training_step
from graphgrad.ir.program import Program
from graphgrad.optimise.pipeline import normal_form, pipeline
from graphgrad.optimise.rewrite import settle

STEPS = ("identities", "fold", "choose", "rules", "relu grads", "merge")


# --- programs: (inputs, outputs) ---------------------------------------------------------------


def scalars(n):
    """h * w, h + b, sin, tanh, again and again, on one number each."""
    x, w, b = (gg.placeholder(()) for _ in range(3))
    h = chain(x, w, b, n)
    return [x, w, b], [h, *gg.gradients(h, [x, w])]


def elementwise(n):
    """The same on arrays."""
    x, w, b = (gg.placeholder((64,)) for _ in range(3))
    y = gg.sum(chain(x, w, b, n))
    return [x, w, b], [y, *gg.gradients(y, [x, w])]


def small_products(n):
    """Products of small matrices and tanh."""
    w = gg.placeholder((8, 8))
    x = h = gg.placeholder((4, 8))
    for _ in range(n // 2):
        h = gg.tanh(h @ w)
    y = gg.sum(h)
    return [x, w], [y, *gg.gradients(y, [x, w])]


def perceptron():
    """A network with two hidden layers and its update."""
    inputs, outputs, updates, _ = training_step(Sizes())
    return [*inputs, *updates], [*outputs, *updates.values()]


def small_layers():
    """24 layers with an override on every activation."""
    inputs, outputs, _, _ = deep_network(Sizes(), marked=True)
    variables = [n.outputs[0] for n in inputs[0].graph.nodes if n.type == "Variable"]
    return [*inputs, *variables], outputs


def lstm(steps=200, hidden=16, batch=4):
    """Unrolled."""
    x = gg.placeholder((steps, batch, hidden))
    w, u = (gg.placeholder((hidden, 4 * hidden)) for _ in range(2))
    b = gg.placeholder((4 * hidden,))
    h = c = gg.zeros((batch, hidden))
    for t in range(steps):
        z = x[t] @ w + h @ u + b
        i, f, o, g = (z[:, k * hidden : (k + 1) * hidden] for k in range(4))
        c = gg.nn.sigmoid(f) * c + gg.nn.sigmoid(i) * gg.tanh(g)
        h = gg.nn.sigmoid(o) * gg.tanh(c)
    y = gg.mean(h * h)
    return [x, w, u, b], [y, *gg.gradients(y, [w, u, b])]


def convolutions(layers=6, batch=2, size=16, channels=4):
    """Convolutions, relu, and pooling in the end."""
    x = h = gg.placeholder((batch, size, size, channels), "float32")
    filters = [gg.placeholder((3, 3, channels, channels), "float32") for _ in range(layers)]
    for w in filters:
        h = gg.nn.relu(gg.nn.conv(h, w))
    y = gg.mean(gg.nn.max_pool(h, 2))
    return [x, *filters], [y, *gg.gradients(y, filters)]


def attention(blocks=8, batch=2, length=16, width=32, heads=4):
    """Transformer blocks."""
    x = h = gg.placeholder((batch, length, width), "float32")
    weights = []

    def weight(*shape):
        weights.append(gg.placeholder(shape, "float32"))
        return weights[-1]

    def normed(h):
        middle = h - gg.mean(h, -1, keepdims=True)
        return middle / gg.sqrt(gg.mean(middle * middle, -1, keepdims=True) + 1e-5) * weight(width)

    def split(h):
        return gg.transpose(gg.reshape(h, (batch, length, heads, width // heads)), (0, 2, 1, 3))

    for _ in range(blocks):
        z = normed(h)
        q, k, v = (split(z @ weight(width, width)) for _ in range(3))
        p = gg.nn.softmax(q @ gg.transpose(k, (0, 1, 3, 2)) / (width // heads) ** 0.5)
        together = gg.reshape(gg.transpose(p @ v, (0, 2, 1, 3)), (batch, length, width))
        h = h + together @ weight(width, width)
        h = h + gg.nn.gelu(normed(h) @ weight(width, 4 * width)) @ weight(4 * width, width)
    y = gg.mean(h * h)
    return [x, *weights], [y, *gg.gradients(y, weights)]


PROGRAMS = {
    "chain of 10,000 numbers": lambda: scalars(10_000),
    "chain of 10,000 arrays": lambda: elementwise(10_000),
    "chain of 10,000 products and tanh": lambda: small_products(10_000),
    "perceptron": perceptron,
    "LSTM of 200 steps": lstm,
    "convolutions": convolutions,
    "8 transformer blocks": attention,
    "24 layers, overridden": small_layers,
}


# --- measuring ---------------------------------------------------------------------------------


def clocked(call, rounds):
    """Median CPU seconds of a call, and what it returned."""
    times = []
    for _ in range(rounds):
        gc.collect()
        start = time.process_time()
        found = call()
        times.append(time.process_time() - start)
    return statistics.median(times), found


def by_pass(program, rounds):
    """[(pass, CPU seconds, nodes after)] of the pipeline."""
    rows = []
    for name, step in pipeline(Counter()):
        seconds, program = clocked(lambda p=program, s=step: s(p), rounds)
        rows.append((name, seconds, len(program.nodes)))
    return rows


def without_each(program, rounds):
    """[(step, CPU seconds saved, nodes more)] where the normal form lacks one step."""

    def settled(left_out):
        steps = normal_form(Counter())
        return settle(
            program, *(s for s, name in zip(steps, STEPS, strict=True) if name != left_out)
        )

    whole, best = clocked(lambda: settled(None), rounds)
    rows = []
    for name in STEPS:
        seconds, found = clocked(lambda n=name: settled(n), rounds)
        rows.append((name, whole - seconds, len(found.nodes) - len(best.nodes)))
    return rows


def run_ratio(program, rounds):
    """CPU seconds of a run as optimised, over those of a run as it was built."""
    rng = np.random.default_rng(0)
    arrays = [
        rng.integers(0, 2, t.shape) if t.dtype.kind == "i" else rng.normal(size=t.shape) * 0.1
        for t in program.inputs
    ]
    arrays = [a.astype(t.dtype) for a, t in zip(arrays, program.inputs, strict=True)]
    plain, better = (
        gg.compile(list(program.inputs), list(program.outputs), optimize=o, num_threads=1)
        for o in (False, True)
    )
    plain(*arrays), better(*arrays)
    pairs = [
        [clocked(lambda f=f: f(*arrays), 1)[0] for f in (plain, better)] for _ in range(5 * rounds)
    ]
    return statistics.median(b / a for a, b in pairs)


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="programs whose name holds this")
    parser.add_argument("--run", action="store_true", help="run them, too: takes longer")
    options = parser.parse_args()
    gc.disable()
    second = []
    print("| us a node | nodes | to | simplify | join products | all passes | run |")
    print("|" + "---|" * 7, flush=True)
    for name, build in PROGRAMS.items():
        if options.only not in name:
            continue
        with gg.Graph():
            program = Program(*build())
            nodes = len(program.nodes)
            passes = by_pass(program, options.rounds)
            second.append((name, nodes, without_each(program, options.rounds)))
            ratio = f"{run_ratio(program, options.rounds):.2f}" if options.run else "-"
        spent = {pass_name: seconds / nodes * 1e6 for pass_name, seconds, _ in passes}
        cells = [spent["simplify"], spent["join products"], sum(spent.values())]
        shown = " | ".join(f"{s:.1f}" for s in cells)
        print(f"| {name} | {nodes:,} | {passes[-1][2]:,} | {shown} | {ratio} |", flush=True)
    print(f"\n| us a node saved, nodes more, without | {' | '.join(STEPS)} |")
    print("|" + "---|" * (1 + len(STEPS)))
    for name, nodes, rows in second:
        cells = [f"{saved / nodes * 1e6:.1f}, {more:,}" for _, saved, more in rows]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
