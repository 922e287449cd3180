"""Every sample of every op."""

import numpy as np

import graphgrad as gg
from graphgrad.laws.trying import placed

__all__ = ["CASES", "cases", "first_and_more", "placed"]


def cases():
    """(id, op, arrays) over the whole registry."""
    found = []
    for name, cls in sorted(gg.op_types().items()):
        if not cls.__module__.startswith("graphgrad."):
            continue
        for i, (op, arrays) in enumerate(cls.samples(np.random.default_rng(0))):
            found.append((f"{name}-{i}", op, [np.asarray(a) for a in arrays]))
    return found


CASES = cases()


def first_and_more(cases, few=2):
    """The first samples of each op, which are tried by default, and those that .ci/run tries."""
    first, more = [], []
    for case in cases:
        (first if int(case[0].rpartition("-")[2]) < few else more).append(case)
    return first, more
