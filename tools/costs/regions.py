"""What an override costs: microseconds a region to build and differentiate; nothing at run time.

    python tools/costs/regions.py [--regions 1500] [--rounds 5]

CPU time of one process, median over rounds, collector off. The second table runs a compiled MLP
with and without overrides whose rules are the ops' own gradients: the programs have the same steps.
"""

import argparse
import gc
import statistics
import time

import graphgrad as gg
from graphgrad.bench.workloads import Sizes, deep_network


def custom(inside):
    """A function with a custom gradient."""

    @gg.custom_gradient
    def f(h):
        for _ in range(inside):
            h = gg.sin(h)
        return h, lambda dy: dy * 2.0

    return f


RULES = {
    "unmarked": None,
    "rule dy * 2": lambda site, dy: dy * 2.0,
    "rule site.default(dy)": lambda site, dy: site.default(dy),
}


def chain(style, inside, regions):
    """Seconds to build, to differentiate, and to differentiate again."""
    with gg.Graph():
        x = h = gg.placeholder(())
        start = time.process_time()
        for _ in range(regions):
            if style == "custom_gradient":
                h = custom(inside)(h)
            elif style == "unmarked":
                for _ in range(inside):
                    h = gg.sin(h)
            else:
                with gg.override_gradient(RULES[style]):
                    for _ in range(inside):
                        h = gg.sin(h)
        built = time.process_time()
        dx = gg.gradients(h, x)
        first = time.process_time()
        gg.gradients(dx, x)
        return built - start, first - built, time.process_time() - first


def network(marked):
    """A compiled value and gradient, with an override on every activation or without."""
    with gg.Graph():
        inputs, outputs, _, arrays = deep_network(Sizes(width=512, layers=24), marked)
        return gg.compile(inputs, outputs), *arrays


def timed(call, *args):
    """Seconds of one call."""
    start = time.process_time()
    call(*args)
    return time.process_time() - start


def main():
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--regions", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    gc.disable()
    for inside in (1, 3, 10):
        for style in (*RULES, "custom_gradient"):
            runs = [chain(style, inside, args.regions) for _ in range(args.rounds)]
            gc.collect()
            parts = [statistics.median(p) / args.regions * 1e6 for p in zip(*runs, strict=True)]
            print(
                f"{inside:3} inside  {style:22} build {parts[0]:6.1f}  gradient {parts[1]:6.1f}  "
                f"second {parts[2]:6.1f} us a region"
            )
    (plain, data), (marked, _) = network(False), network(True)
    pairs = [(timed(plain, data), timed(marked, data)) for _ in range(300)]
    ratio = statistics.median(b for _, b in pairs) / statistics.median(a for a, _ in pairs)
    steps = [sum(len(plan.steps) for plan in f.plans) for f in (plain, marked)]
    print(
        f"MLP of 24 layers: {steps[0]} steps plain, {steps[1]} with 24 overrides; time {ratio:.3f}"
    )


if __name__ == "__main__":
    main()
