"""What pictures cost: seconds to write, bytes, and seconds to lay out, for graphs of many sizes.

    python tools/costs/pictures.py [--sizes 100 500 2000 20000 100000] [--rounds 3] [--timeout 60]

A network of dense layers in name scopes, every other one under a region, with its gradients, as
to_dot and to_html show it without options: above 200 nodes with about 80 things. Writing is CPU
time of this process, `dot` of its own process; `open` is the time on the clock from asking headless
Chromium for the file to the picture, with how much is drawn then. Medians over rounds. A dash: no
such program.
"""

import argparse
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import graphgrad as gg

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.inspect.chromium import PROGRAM, Browser


def straight_through(site, dy):
    """dy where the input is within 1 of zero."""
    (x,) = site.inputs
    return gg.where(abs(x) <= 1.0, dy, 0.0)


def network(nodes):
    """Tensors of a network whose graph has about so many nodes."""
    with gg.Graph() as graph:
        x = h = gg.placeholder(("batch", 8), name="x")
        weights = []
        while len(graph) < nodes * 0.37:
            number = len(weights)
            with gg.name_scope(f"layer{number}"):
                w = gg.variable(np.ones((8, 8)), name="w")
                weights.append(w)
                h = h @ w
                if number % 2:
                    with gg.override_gradient(straight_through):
                        h = gg.sign(h)
                else:
                    h = gg.tanh(h)
        loss = gg.mean(h * h)
        return [loss, *gg.gradients(loss, [x, *weights])]


def clocked(call, rounds):
    """Median CPU seconds of a call, and what it returned."""
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        found = call()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds), found


def laid_out(text, timeout):
    """CPU seconds of Graphviz, in words."""
    if shutil.which("dot") is None:
        return "-"
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    try:
        subprocess.run(
            ["dot", "-Tsvg"], input=text.encode(), capture_output=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return f"> {timeout:g}"
    return f"{resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before:.2f}"


def opened(browser, page, rounds):
    """Median seconds until the page shows its picture, and how many things it draws, in words."""
    if browser is None:
        return "-", "-"
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        path.write_text(page, encoding="utf-8")
        for _ in range(rounds):
            start = time.perf_counter()
            browser.open(path)
            seconds.append(time.perf_counter() - start)
    drawn = browser.do("document.querySelectorAll('#picture .item[id]').length")
    return f"{statistics.median(seconds):.2f}", f"{drawn:,}"


def row(size, browser, options):
    """The cells of one size."""
    tensors = network(size)
    nodes = len(tensors[0].graph)
    writing, text = clocked(lambda: gg.to_dot(tensors), options.rounds)
    paging, page = clocked(lambda: gg.to_html(tensors), options.rounds)
    listing, _ = clocked(lambda: gg.graph_text(tensors), options.rounds)
    opening, drawn = opened(browser, page, options.rounds)
    return [
        f"{nodes:,}",
        f"{writing:.2f}",
        f"{len(text) / 1000:,.0f}",
        laid_out(text, options.timeout),
        f"{paging:.2f}",
        f"{len(page) / 1000:,.0f}",
        opening,
        drawn,
        f"{listing:.2f}",
    ]


def main():
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 500, 2000, 20_000, 100_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=60.0)
    options = parser.parse_args()
    print("| nodes | to_dot, s | KB | dot, s | to_html, s | KB | open, s | drawn | graph_text, s |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        browser = None if PROGRAM is None else Browser(Path(folder))
        for size in options.sizes:
            print(f"| {' | '.join(row(size, browser, options))} |", flush=True)
        if browser is not None:
            browser.close()


if __name__ == "__main__":
    main()
