"""What it costs on JAX to raise what kernels refuse: bounds="check" beside bounds="jax".

    python tools/costs/jax_checks.py [--rounds 41]

Each program is compiled both ways and called in turns; medians of CPU time, all threads counted,
and the median of the ratios of neighbouring calls.
"""

import argparse
import statistics
import time

import numpy as np

import graphgrad as gg

RNG = np.random.default_rng(0)
WORDS, WIDTH, BATCH = 50_000, 128, 8192


def embedding():
    """Rows of a table, and the gradient of the table."""
    table, ids = gg.placeholder((WORDS, WIDTH), "float32"), gg.placeholder((BATCH,), "int64")
    loss = gg.sum(gg.nn.embedding(ids, table) ** 2)
    feeds = RNG.normal(size=(WORDS, WIDTH)).astype("float32"), RNG.integers(0, WORDS, BATCH)
    return [table, ids], [loss, gg.sum(gg.gradients(loss, table))], feeds


def trained(**options):
    """A step that writes a table in place."""
    table = gg.variable(RNG.normal(size=(WORDS, WIDTH)).astype("float32"))
    ids = gg.placeholder((BATCH,), "int64")
    rows = gg.nn.embedding(ids, table)
    updates = {table: gg.at(table)[ids].add(-0.01 * rows)}
    return [ids], gg.sum(rows), (RNG.integers(0, WORDS, BATCH),), {"updates": updates, **options}


def donated():
    """The same, where the run takes the memory of the table."""
    return trained(donate=True)


def along_an_axis():
    """take_along_axis of a million elements."""
    x, i = gg.placeholder((1000, 1000)), gg.placeholder((1000, 1000), "int64")
    feeds = RNG.normal(size=(1000, 1000)), RNG.integers(0, 1000, (1000, 1000))
    return [x, i], gg.sum(gg.take_along_axis(x, i)), feeds


def in_a_loop():
    """at.add in 2000 runs of a scan."""
    i, x = gg.placeholder((2000, 16), "int64"), gg.placeholder((2000, 16))

    def step(total, row):
        return gg.at(total)[row[0]].add(row[1]), gg.zeros(())

    total, _ = gg.scan(step, gg.zeros((500,)), (i, x))
    return [i, x], total, (RNG.integers(0, 500, (2000, 16)), RNG.normal(size=(2000, 16)))


def solved():
    """A system of equations, which is factored once, and its gradient."""
    a, b = gg.placeholder((300, 300)), gg.placeholder((300, 4))
    y = gg.sum(gg.linalg.solve(a, b) ** 2)
    feeds = RNG.normal(size=(300, 300)) + 30 * np.eye(300), RNG.normal(size=(300, 4))
    return [a, b], [y, *gg.gradients(y, [a, b])], feeds


def without_indices():
    """Layers and their gradients: nothing that could be refused."""
    x, w = gg.placeholder((256, 512)), gg.placeholder((512, 512))
    y = gg.sum(gg.tanh(gg.tanh(x @ w) @ w))
    feeds = RNG.normal(size=(256, 512)), RNG.normal(size=(512, 512)) / 20
    return [x, w], [y, *gg.gradients(y, [w])], feeds


PROGRAMS = [embedding, trained, donated, along_an_axis, in_a_loop, solved, without_indices]


def compiled(make, bounds):
    """The program one way, as a function of nothing that returns the CPU seconds of a call."""
    with gg.Graph():
        inputs, outputs, feeds, *options = make()
        f = gg.compile(inputs, outputs, backend="jax", bounds=bounds, **dict(*options))

    def seconds():
        start = time.process_time()
        f(*feeds)
        return time.process_time() - start

    return seconds


def main():
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=41)
    rounds = parser.parse_args().rounds
    print("| program | unchecked, CPU ms | checked | ratio |\n|---|---|---|---|")
    for make in PROGRAMS:
        ways = [compiled(make, bounds) for bounds in ("jax", "check")]
        for seconds in ways * 2:
            seconds()
        rows = [[seconds() for seconds in ways] for _ in range(rounds)]
        off, on = (1000 * statistics.median(column) for column in zip(*rows, strict=True))
        ratio = statistics.median(b / a for a, b in rows)
        print(f"| {make.__doc__.rstrip('.')} | {off:.2f} | {on:.2f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
