"""How the time for each of n things grows with n: constant where the whole is linear.

    python tools/costs/growth.py [--sizes 250 500 1000 2000] [--cases slices scopes] [--only dot]

CPU microseconds an item, of one process, the least of three rounds; `!` where the last size takes
more than 1.3 times as long an item as the one before. Compiled code on disk is not used. `and grad`
builds and differentiates.
"""

import argparse
import gc
import os
import pickle
import time
from contextlib import ExitStack

os.environ["GRAPHGRAD_CACHE"] = "off"

import graphgrad as gg  # the cache is settled first

ROUNDS = 3
MORE = 1.3  # of the time an item at half the size


def half(site, dy):
    """A rule."""
    return dy * 0.5


def scopes_of(make, n):
    """n blocks, each in the one before and around a node."""
    with ExitStack() as blocks:
        x = h = gg.placeholder(())
        for _ in range(n):
            blocks.enter_context(make())
            h = gg.sin(h)
    return x, h


def nested_regions(n):
    """Regions in regions."""
    return scopes_of(lambda: gg.override_gradient(half), n)


def nested_scopes(n):
    """Name scopes in name scopes."""
    return scopes_of(lambda: gg.name_scope("s"), n)


def chain(step, n):
    """n steps one after the other."""
    x = h = gg.placeholder(())
    for _ in range(n):
        h = step(h)
    return x, h


def regions(n):
    """Regions in a row."""
    return chain(gg.override(half)(gg.sin), n)


def scopes(n):
    """Name scopes in a row."""

    def step(h):
        with gg.name_scope("s"):
            return gg.sin(h)

    return chain(step, n)


def conds(n):
    """Choices in a row."""
    return chain(lambda h: gg.cond(h > 0.0, lambda: gg.sin(h), lambda: gg.cos(h)), n)


def custom_gradients(n):
    """Calls of a function with a gradient of its own."""
    return chain(gg.custom_gradient(lambda t: (gg.sin(t), lambda dy: dy * 2.0)), n)


def marks(n):
    """Nodes that are marked afterwards, one by one."""
    x, h = chain(gg.sin, n)
    graph = x.graph
    for node in graph.nodes[1:]:
        graph.mark(gg.select.nodes([node]), half)
    return x, h


def slices(n):
    """The sum of what is computed of n elements."""
    x = gg.placeholder((n,))
    return x, sum(gg.sin(x[i] * float(i + 1)) for i in range(n))


def windows(n):
    """The sum of what is computed of n slices that overlap."""
    x = gg.placeholder((n + 3,))
    return x, sum(gg.sum(gg.tanh(x[i : i + 3])) for i in range(n))


CASES = (
    regions,
    nested_regions,
    scopes,
    nested_scopes,
    conds,
    custom_gradients,
    marks,
    slices,
    windows,
)


def acts(graph, x, y):
    """What is measured, by name. What is compiled is the value and the gradient."""
    dx = gg.gradients(y, x)
    stored = pickle.dumps(graph)
    return {
        "copy": graph.copy,
        "pickle": lambda: pickle.dumps(graph),
        "unpickle": lambda: pickle.loads(stored),
        "dot": lambda: gg.to_dot(graph),
        "html": lambda: gg.to_html(graph),
        "explain": lambda: str(gg.explain(y, x)),
        "lint": lambda: gg.lint(graph),
        "numpy": lambda: gg.compile([x], [y, dx], backend="numpy"),
        "llvm": lambda: gg.compile([x], [y, dx], backend="llvm"),
    }


def built(case, n):
    """A graph with n things."""
    with gg.Graph() as graph:
        return graph, *case(n)


def differentiated(case, n):
    """The gradient, in a graph of which nothing was asked before."""
    _, x, y = built(case, n)
    return gg.gradients(y, x)


def seconds(act, rounds):
    """The CPU time of a call, the least of some rounds; of one, where that takes long."""
    least = float("inf")
    for _ in range(rounds):
        gc.collect()
        start = time.process_time()
        act()
        took = time.process_time() - start
        least = min(least, took)
        if took > 1.0:
            break
    return least


def measured(case, sizes, only):
    """Name of an act -> seconds an item, for each size."""
    found = {}
    for n in (5, *sizes):
        todo = {
            "build": lambda n=n: built(case, n),
            "and grad": lambda n=n: differentiated(case, n),
        }
        for name, act in {**todo, **acts(*built(case, n))}.items():
            if not only or name in only:  # code that was compiled is there the second time
                each = seconds(act, 1 if name == "llvm" else ROUNDS) / n
                found.setdefault(name, []).extend([each] * (n in sizes))
    return found


def main():
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[250, 500, 1000, 2000])
    parser.add_argument("--cases", nargs="*", default=[c.__name__ for c in CASES])
    parser.add_argument("--only", nargs="*", default=[])
    args = parser.parse_args()
    print(f"{'':28}" + "".join(f"{n:>10}" for n in args.sizes) + "  us an item")
    for case in CASES:
        if case.__name__ not in args.cases:
            continue
        for name, each in measured(case, args.sizes, args.only).items():
            more = len(each) > 1 and each[-1] > MORE * each[-2]
            row = "".join(f"{1e6 * t:10.1f}" for t in each)
            print(f"{case.__name__:18}{name:10}{row}{'  !' if more else ''}", flush=True)


if __name__ == "__main__":
    main()
