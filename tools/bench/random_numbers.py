"""CPU times of random numbers beside NumPy's own generators, interleaved: medians and ratios.

    python -m tools.bench.random_numbers [count] [repeats]

`own` is `Generator(Philox(key))`, which draws from the same words; `pcg` is `default_rng()`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import graphgrad as gg

BACKENDS = "numpy", "llvm", "jax"


def cases(n: int) -> dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]:
    """What is drawn: by graphgrad from a seed, and by a generator of NumPy's."""
    f32 = np.float32
    return {
        "uniform": (lambda s: gg.random.uniform((n,), seed=s), lambda g: g.random(n)),
        "uniform float32": (
            lambda s: gg.random.uniform((n,), seed=s, dtype="float32"),
            lambda g: g.random(n, f32),
        ),
        "normal": (lambda s: gg.random.normal((n,), seed=s), lambda g: g.standard_normal(n)),
        "normal float32": (
            lambda s: gg.random.normal((n,), seed=s, dtype="float32"),
            lambda g: g.standard_normal(n, f32),
        ),
        "integers": (
            lambda s: gg.random.integers(0, 100, (n,), seed=s),
            lambda g: g.integers(0, 100, n),
        ),
        "exponential": (
            lambda s: gg.random.exponential((n,), seed=s),
            lambda g: g.standard_exponential(n),
        ),
        "permutation": (lambda s: gg.random.permutation(n, seed=s), lambda g: g.permutation(n)),
    }


def compiled(draw: Callable[[Any], Any], backend: str) -> Callable[[], Any]:
    """The draw as a function without arguments, compiled; its seed is fed."""
    with gg.Graph():
        seed = gg.placeholder((), "int64")
        run = gg.compile(seed, draw(seed), backend=backend)
    key = np.array(7)
    run(key)
    return lambda: run(key)


def timed(runs: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Median milliseconds of CPU of each, one after the other in every round."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.process_time()
            run()
            found[name].append(1e3 * (time.process_time() - start))
    return {name: median(times) for name, times in found.items()}


def main() -> None:
    """A line for each kind of number."""
    n, repeats = (int(a) for a in [*sys.argv[1:], "1000000", "15"][:2])
    print(f"{n} numbers, median of {repeats}: ms of CPU, and times NumPy's own Philox / PCG64")
    for name, (draw, numpy) in cases(n).items():
        philox, pcg = np.random.Generator(np.random.Philox(key=7)), np.random.default_rng(7)
        runs: dict[str, Callable[[], Any]] = {b: compiled(draw, b) for b in BACKENDS}
        runs["own"] = lambda g=philox, f=numpy: f(g)  # type: ignore[misc]
        runs["pcg"] = lambda g=pcg, f=numpy: f(g)  # type: ignore[misc]
        ms = timed(runs, repeats)
        row = [
            f"{b} {ms[b]:6.1f} ({ms[b] / ms['own']:.2f} / {ms[b] / ms['pcg']:.2f})"
            for b in BACKENDS
        ]
        print(
            f"{name:16} own {ms['own']:5.1f}  pcg {ms['pcg']:5.1f}  " + "  ".join(row), flush=True
        )


if __name__ == "__main__":
    main()
