"""Programs for tests of passes: built from a function, written as text, run on hard values."""

from collections import Counter

import numpy as np

import graphgrad as gg
from graphgrad.ir.build import build as build_node
from graphgrad.ir.types import as_dtype, as_shape
from graphgrad.ir.verify import verify_program
from graphgrad.ops.control import interpret
from graphgrad.ops.sources import Placeholder
from graphgrad.optimise.passes.common import merging
from graphgrad.optimise.passes.fold import Folding
from graphgrad.optimise.passes.identities import identities
from graphgrad.optimise.rewrite import settle

LENGTHS = {None: 5, "N": 4}
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.0, 1.0, -1.0, 0.25, -3.5]
EXTREME = [5e-324, -5e-324, 1e-310, 1e308, -1e308, 2.0**-1022]


def eliminate_common_subexpressions(p):
    return settle(p, merging(Counter()))


def fold_constants(p, **limits):
    return settle(p, Folding(Counter(), **limits))


def remove_residuals_and_identities(p):
    return settle(p, identities(Counter()))


def program(build, **inputs):
    """The program of build(x=..., ...): a placeholder for each shape, or (shape, dtype)."""
    with gg.Graph():
        xs = [given(*shape_and_dtype(spec), name=n) for n, spec in inputs.items()]
        made = build(*xs)
        ys = list(made) if isinstance(made, tuple | list) else [made]
        ys = [y if isinstance(y, gg.Tensor) else gg.constant(y) for y in ys]
    return gg.Program(xs, ys)


def given(shape, dtype, name):
    """A placeholder; of a None nothing is known, as of the number of elements that a mask picks."""
    if None not in shape:
        return gg.placeholder(shape, dtype, name)
    return build_node(Placeholder(as_shape(shape), as_dtype(dtype)), (), name).outputs[0]


def shape_and_dtype(spec):
    return spec if spec and isinstance(spec[0], tuple) else (spec, "float64")


def text(p):
    """One line per node, from the outputs back, whatever the nodes and their order are called."""
    names = {t: f"in{i}" for i, t in enumerate(p.inputs)}
    lines = []
    stack = [t.node for t in reversed(p.outputs) if t not in names]
    while stack:
        n = stack[-1]
        first = [t.node for t in reversed(n.inputs) if t not in names]
        if first:
            stack += first
        elif n.outputs[0] in names:
            stack.pop()
        else:
            i = len(lines)
            names.update((t, f"{i}.{t.index}") for t in stack.pop().outputs)
            made = [t.type for t in n.outputs]
            lines.append(f"{i} = {n.op!r}({', '.join(names[t] for t in n.inputs)}): {made}")
    return "\n".join([*lines, f"return {', '.join(names[t] for t in p.outputs)}"])


def types(p):
    return [n.type for n in p.nodes]


def arrays_for(p, rng, values):
    """Arrays for the inputs of a program, of these numbers."""
    return [array_of(t, rng, values) for t in p.inputs]


def array_of(t, rng, values):
    shape = tuple(LENGTHS.get(d, d) for d in t.shape)
    if t.dtype.kind == "b":
        return rng.random(shape) < 0.5
    if t.dtype.kind in "iu":
        info = np.iinfo(t.dtype)
        edges = [info.min, info.max, 0, 1, 2, 3, 5]
        return rng.choice(np.array(edges, t.dtype), size=shape)
    with np.errstate(over="ignore"):
        found = rng.choice(np.array(values), size=shape).astype(t.dtype)
        return (
            found + 1j * rng.choice(np.array(values), size=shape) if t.dtype.kind == "c" else found
        )


def run(p, arrays):
    """The values of the outputs, node by node by the ops' own kernels."""
    with np.errstate(all="ignore"):
        return [np.asarray(y) for y in interpret(p, np, arrays)]


def check_bits(before, after, rng):
    """The same bits on every number, where a NaN is a NaN."""
    for _ in range(4):
        arrays = arrays_for(before, rng, SPECIAL + EXTREME)
        for a, b in zip(run(before, arrays), run(after, arrays), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            if a.dtype.kind in "fc":
                np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
                a, b = a[~np.isnan(a)], b[~np.isnan(b)]
            assert a.tobytes() == b.tobytes(), (a, b)


def check_rounding(before, after, rng):
    """Close on ordinary numbers; NaN, infinities and signs of zero the same on special ones."""
    for _ in range(4):
        for values in (rng.normal(size=20), SPECIAL):
            compare(
                *(run(p, arrays_for(p, np.random.default_rng(1), values)) for p in (before, after))
            )


def compare(found, expected, rtol=1e-12, signs=True):
    """Close, with NaN and infinities in the same places, and the same sign where both are zero."""
    for a, b in zip(found, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)
        if signs and a.dtype.kind == "f":
            zero = (a == 0) & (b == 0)
            np.testing.assert_array_equal(np.signbit(a[zero]), np.signbit(b[zero]))


def check_close(before, after, rng):
    """Close on ordinary, positive numbers."""
    for _ in range(4):
        arrays = arrays_for(before, rng, rng.uniform(0.5, 2.0, size=20))
        for a, b in zip(run(before, arrays), run(after, arrays), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def verified(p):
    verify_program(p)
    return p
