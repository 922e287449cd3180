"""Every sample of every op, and how to build it."""

import numpy as np

import graphgrad as gg
from graphgrad.ir.build import build


def cases():
    """(id, op, arrays) over the whole registry."""
    found = []
    for name, cls in sorted(gg.op_types().items()):
        if not cls.__module__.startswith("graphgrad."):
            continue
        for i, (op, arrays) in enumerate(cls.samples(np.random.default_rng(0))):
            found.append((f"{name}-{i}", op, [np.asarray(a) for a in arrays]))
    return found


def placed(op, arrays):
    """(inputs, node): the op on placeholders of the arrays' types, in a graph of its own."""
    with gg.Graph():
        xs = [gg.placeholder(a.shape, a.dtype, name=f"x{i}") for i, a in enumerate(arrays)]
        return xs, build(op, tuple(xs))


CASES = cases()


def drawn(rng, like):
    """Normal numbers of an array's shape and dtype, in both parts of complex ones."""
    made = rng.normal(size=like.shape)
    if like.dtype.kind == "c":
        made = made + 1j * rng.normal(size=like.shape)
    return made.astype(like.dtype)


def paired(lefts, rights):
    """The real product re(sum(left * right)), in which a gradient is paired with a direction."""
    return sum(np.sum(a * b).real for a, b in zip(lefts, rights, strict=True))
