"""What open lengths cost beside fixed ones: `python tools/costs/open_lengths.py`.

CPU seconds of one thread, the least of several rounds in which both take turns.
"""

import gc
import time

import numpy as np

import graphgrad as gg

ROUNDS, NODES, CALLS = 9, 10_000, 20_000
FIXED, OPEN = (8, 4), ("N", 4)


def chain(shape):
    """Element-wise nodes."""
    with gg.Graph():
        x = h = gg.placeholder(shape, name="x")
        for _ in range(NODES // 3):
            h = gg.tanh(h) * 0.5 + x
        return h, x


def moved(shape):
    """Slices and what joins them: each node has a length to compute."""
    with gg.Graph():
        x = h = gg.placeholder(shape, name="x")
        for _ in range(NODES // 4):
            h = gg.concat([h[1:], h[:1]], axis=0) + x[0]
        return h, x


def built(make, shape):
    """Seconds to build it."""
    start = time.process_time()
    make(shape)
    return time.process_time() - start


def differentiated(make, shape):
    """Seconds to differentiate it."""
    h, x = make(shape)
    y = gg.sum(h)
    start = time.process_time()
    gg.gradients(y, [x])
    return time.process_time() - start


def called(backend, shape):
    """Seconds of many calls of a small program."""
    with gg.Graph():
        x = gg.placeholder(shape, name="x")
        f = gg.compile(x, gg.sum(gg.tanh(x) * 2), backend=backend)
    value = np.ones((8, 4))
    f(value)
    start = time.process_time()
    for _ in range(CALLS):
        f(value)
    return time.process_time() - start


def pair(measure, *arguments):
    """The least of each, where they take turns."""
    rounds = [(measure(*arguments, FIXED), measure(*arguments, OPEN)) for _ in range(ROUNDS)]
    return [min(column) for column in zip(*rounds, strict=True)]


def main():
    """Print a table."""
    gc.disable()
    for title, measure, make in [
        ("build 10,000 element-wise nodes", built, chain),
        ("build 10,000 slices and concats", built, moved),
        ("differentiate the element-wise", differentiated, chain),
        ("differentiate slices and concats", differentiated, moved),
    ]:
        fixed, of_open = pair(measure, make)
        print(f"{title:36} fixed {fixed:.3f} s, open {of_open:.3f} s, ratio {of_open / fixed:.2f}")
    for backend in ("numpy", "llvm"):
        fixed, of_open = (1e6 * each / CALLS for each in pair(called, backend))
        print(f"a call on {backend:26} fixed {fixed:.2f} us, open {of_open:.2f} us")


if __name__ == "__main__":
    main()
