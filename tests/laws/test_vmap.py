"""Laws over the registry: vmap of an op is the op on every example, and so is its gradient."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.build import build

from ..each import each
from .cases import CASES, drawn, paired
from .test_gradients import DOUBLE
from .test_types import close

WITH_INPUTS = [(name, op, arrays) for name, op, arrays in CASES if arrays]


def examples(arrays, count):
    """`count` examples of every input: the sample's own, slightly changed where it is floating."""
    return [
        np.stack([a + a.dtype.type(0.01 * i) if a.dtype.kind in "fc" else a for i in range(count)])
        for a in arrays
    ]


def patterns(count):
    """Which inputs have the batch axis: all, and one of a few alone, or of many all but an end."""
    every = [True] * count
    if count <= 3:
        alone = [[i == k for i in range(count)] for k in range(count)]
        return [every, *alone] if count > 1 else [every]
    return [every, [*every[:-1], False], [False, *every[1:]]]


LOOPED = {"Conv2DBackpropFilter", "Conv2DBackpropInput"}  # where a tensor gives lengths when run
pytestmark = pytest.mark.filterwarnings("ignore::graphgrad.PerformanceWarning")


@each(WITH_INPUTS)
def test_vmap_of_an_op_is_a_few_nodes_and_no_loop(op, arrays):
    for flags in patterns(len(arrays)):
        with gg.Graph() as g:
            shapes = [(3, *a.shape) if f else a.shape for a, f in zip(arrays, flags, strict=True)]
            xs = [gg.placeholder(s, a.dtype) for s, a in zip(shapes, arrays, strict=True)]
            start = len(g.nodes)
            axes = [0 if f else None for f in flags]
            gg.vmap(lambda *ts: list(build(op, ts).outputs), axes)(*xs)
        looped = any(n.type == "PerExample" for n in g.nodes)
        assert not looped or (op.type in LOOPED and len(arrays) == 3)
        assert len(g.nodes) - start <= 16


@each(WITH_INPUTS)
def test_vmap_over_as_many_examples_as_there_are_when_run(op, arrays):
    """None at all too."""
    for flags in patterns(len(arrays))[:2]:
        shapes = [(None, *a.shape) if f else a.shape for a, f in zip(arrays, flags, strict=True)]
        with gg.Graph():
            xs = [gg.placeholder(s, a.dtype) for s, a in zip(shapes, arrays, strict=True)]
            axes = [0 if f else None for f in flags]
            ys = gg.vmap(lambda *ts: list(build(op, ts).outputs), axes)(*xs)
            run = gg.compile(xs, ys)
            row = build(op, tuple(gg.constant(a) for a in arrays))
            rows = gg.evaluate(list(row.outputs))
        for count in (2, 0):
            batch = [
                np.repeat(a[None], count, 0) if f else a for a, f in zip(arrays, flags, strict=True)
            ]
            for found, one in zip(run(*batch), rows, strict=True):
                assert (found.shape, found.dtype) == ((count, *one.shape), one.dtype)
                close(found, np.broadcast_to(one, found.shape))


@each(WITH_INPUTS)
def test_vmap_is_a_loop_over_examples(op, arrays):
    for flags in patterns(len(arrays)):
        batch = [b if f else a for a, b, f in zip(arrays, examples(arrays, 3), flags, strict=True)]
        with gg.Graph():
            xs = [gg.placeholder(b.shape, b.dtype) for b in batch]
            axes = [0 if f else None for f in flags]
            ys = gg.vmap(lambda *ts: list(build(op, ts).outputs), axes)(*xs)
            rows = [
                build(op, tuple(x[i] if f else x for x, f in zip(xs, flags, strict=True))).outputs
                for i in range(3)
            ]
            expected = [gg.stack([row[k] for row in rows]) for k in range(len(ys))]
            wrt = [x for x in xs if x.type.differentiable]
            smooth = [k for k, y in enumerate(ys) if y.type.differentiable]
            weights = [np.cos(np.arange(ys[k].size)).reshape(ys[k].shape) for k in smooth]
            seeds = [w.astype(ys[k].dtype) for w, k in zip(weights, smooth, strict=True)]
            both = []
            if wrt and smooth and op.differentiable:
                for outs in (ys, expected):
                    chosen = [outs[k] for k in smooth]
                    both.append(gg.gradients(chosen, wrt, seeds, unconnected="zero"))
            found, want = gg.compile(xs, [[ys, both[:1]], [expected, both[1:]]])(*batch)
        for a, b in zip(gg.ir.tree.flatten(found), gg.ir.tree.flatten(want), strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            close(a, b)


@each(WITH_INPUTS)
def test_forward_and_reverse_mode_agree_under_vmap(op, arrays):
    """<dy, jvp(v)> = <vjp(dy), v>, for a batch."""
    rng = np.random.default_rng(5)
    batch = examples(arrays, 3)
    with gg.Graph():
        xs = [gg.placeholder(b.shape, b.dtype) for b in batch]
        made = gg.vmap(lambda *ts: list(build(op, ts).outputs))(*xs)
        ys = [y for y in made if y.type.differentiable]
        wrt = [(x, b) for x, b in zip(xs, batch, strict=True) if x.type.differentiable]
        if not ys or not wrt or not op.differentiable:
            pytest.skip("no gradient")
        vs = [drawn(rng, b) for _, b in wrt]
        dys = [drawn(rng, y) for y in ys]
        forward = gg.jvp(ys, [x for x, _ in wrt], vs)
        backward = gg.gradients(ys, [x for x, _ in wrt], dys, unconnected="zero")
        tangents, dxs = gg.compile(xs, [forward, backward])(*batch)
    left, right = paired(dys, tangents), paired(dxs, vs)
    tolerance = 1e-9 if all(a.dtype in DOUBLE for a in (*vs, *dys)) else 1e-4
    np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance)
