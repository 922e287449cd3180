"""Laws over the registry: an op is linear where it says so, and every gradient is linear in dy."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.differentiate.forward.jvp import jvp
from graphgrad.differentiate.linearity import NonLinear, check_linear
from graphgrad.ir.residual import residual_op
from graphgrad.ops.base import apply
from graphgrad.ops.sequencing import After

from ..each import each
from .cases import CASES, drawn, paired, placed
from .test_gradients import DOUBLE, SMOOTH

PASS_BY_VALUE = {"StopGradient", "ZeroGradient"}  # linear in value, without passing a gradient


def vary(op, arrays):
    """The sets of inputs, by place, that may vary together while the op stays linear."""
    floating = [i for i, a in enumerate(arrays) if a.dtype.kind in "fc"]
    if op.linear == "joint":
        return [floating] if floating else []
    if op.linear == "each":
        return [[i] for i in floating if i not in op.shape_only]
    return [[i for i in op.linear if i in floating]]


LINEAR = [
    (f"{name} in {places}", op, arrays, places)
    for name, op, arrays in CASES
    if op.linear
    for places in vary(op, arrays)
    if places
]


def test_ops_that_are_linear_by_name_say_so():
    types = gg.op_types()
    for name in ("Add", "ReduceSum", "Concat", "Identity", "StopGradient", "Pad"):
        op, _ = next(iter(types[name].samples(np.random.default_rng(0))))
        assert op.linear == "joint", name
    assert types["MatMul"].linear == types["Multiply"].linear == types["Conv2D"].linear == "each"
    assert types["Divide"].linear == types["Gather"].linear == (0,)
    assert types["Where"].linear == (1, 2)
    for name in ("Exp", "Relu", "Maximum", "Softmax", "Round", "PyFunction", "Cond"):
        assert types[name].linear == (), name


def test_to_wait_for_it_is_not_to_depend_on_it():
    x, dy = gg.placeholder((3,)), gg.placeholder((3,))
    later = apply(After(), gg.exp(x), dy)
    check_linear([later * dy, apply(After(), dy, x)], [dy])
    with pytest.raises(NonLinear, match="does not depend on it"):
        check_linear([later], [dy])


def test_to_read_from_inside_a_region_is_linear():
    with gg.Graph():
        with gg.override_gradient(lambda site, dy: dy):
            x = gg.placeholder((3,))
            y = gg.sin(x * 2.0)
        read = residual_op(y.node.region)
        assert read.linear == "joint"
        inside = apply(read, y.node.inputs[0])
        check_linear([inside * 3.0], [y.node.inputs[0]])
        with pytest.raises(NonLinear, match="multiplies it with itself"):
            check_linear([inside * inside], [y.node.inputs[0]])


def test_padding_with_a_number_that_is_not_zero_is_not_linear():
    types = gg.op_types()
    assert types["Pad"](((1, 1),), 0.0).linear == "joint"
    assert types["Pad"](((1, 1),), 2.0).linear == ()


@each(LINEAR)
def test_an_op_is_linear_where_it_says_so(op, arrays, places):
    """f(a x + b y) = a f(x) + b f(y)."""
    rng = np.random.default_rng(2)
    arrays = [a.astype("float64") if a.dtype == np.float32 else a for a in arrays]
    xs, node = placed(op, arrays)
    f = gg.compile(xs, list(node.outputs), optimize=False)

    def at(varied):
        return f(*[varied.get(i, a) for i, a in enumerate(arrays)])

    x, y = ({i: drawn(rng, arrays[i]) for i in places} for _ in range(2))
    a, b = 1.75, -0.625
    sums = at({i: a * x[i] + b * y[i] for i in places})
    for got, fx, fy in zip(sums, at(x), at(y), strict=True):
        if got.dtype.kind not in "fc":  # what is made of it is no longer counted as linear
            continue
        tolerance = 1e-10 if got.dtype in DOUBLE else 1e-5
        np.testing.assert_allclose(got, a * fx + b * fy, rtol=tolerance, atol=tolerance)


@each(LINEAR)
def test_the_gradient_of_a_linear_op_is_its_adjoint(op, arrays, places):
    """<dy, f(x)> = <vjp(dy), x>, which forward mode relies on."""
    if op.type in PASS_BY_VALUE:
        pytest.skip("transposed by value")
    rng = np.random.default_rng(3)
    arrays = [a.astype("float64") if a.dtype == np.float32 else a for a in arrays]
    xs, node = placed(op, arrays)
    ys = [t for t in node.outputs if t.dtype in DOUBLE]
    if not ys:
        pytest.skip("no output in double precision")
    dys = [drawn(rng, y) for y in ys]
    with xs[0].graph:
        dxs = gg.gradients(ys, [xs[i] for i in places], grad_ys=dys, unconnected="zero")
    values = gg.compile(xs, [ys, dxs])(*arrays)
    left, right = paired(dys, values[0]), paired(values[1], [arrays[i] for i in places])
    np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("known", [True, False], ids=["known lengths", "unknown lengths"])
@each(SMOOTH)
def test_the_gradient_of_every_op_is_linear_by_its_structure(op, arrays, known):
    with gg.Graph():
        shapes = [a.shape if known else (None,) * a.ndim for a in arrays]
        xs = [gg.placeholder(s, a.dtype) for s, a in zip(shapes, arrays, strict=True)]
        try:
            node = gg.ir.build.build(op, tuple(xs))
        except gg.ShapeError:
            pytest.skip("the op says that it needs known lengths")
        ys = [t for t in node.outputs if t.type.differentiable]
        dys = [gg.placeholder(y.shape, y.dtype) for y in ys]
        dxs = gg.gradients(ys, [x for x in xs if x.type.differentiable], grad_ys=dys)
        check_linear([dx for dx in dxs if dx is not None], dys)


@pytest.mark.parametrize("known", [True, False], ids=["known lengths", "unknown lengths"])
@each(SMOOTH)
def test_forward_and_reverse_mode_agree(op, arrays, known):
    """<dy, jvp(v)> = <vjp(dy), v>."""
    rng = np.random.default_rng(4)
    with gg.Graph():
        shapes = [a.shape if known else (None,) * a.ndim for a in arrays]
        xs = [gg.placeholder(s, a.dtype) for s, a in zip(shapes, arrays, strict=True)]
        try:
            node = gg.ir.build.build(op, tuple(xs))
        except gg.ShapeError:
            pytest.skip("the op says that it needs known lengths")
        ys = [t for t in node.outputs if t.type.differentiable]
        if not ys:
            pytest.skip("nothing to differentiate")
        wrt = [(x, a) for x, a in zip(xs, arrays, strict=True) if x.type.differentiable]
        vs = [drawn(rng, a) for _, a in wrt]
        shown = ys if known else gg.compile(xs, ys)(*arrays)
        dys = [drawn(rng, y) for y in shown]
        forward = jvp(ys, [x for x, _ in wrt], vs)
        seeds = [gg.placeholder(y.shape, y.dtype) for y in ys]
        reverse = gg.gradients(ys, [x for x, _ in wrt], seeds, unconnected="zero")
    tangents, gradients = gg.compile([*xs, *seeds], [forward, reverse])(*arrays, *dys)
    left, right = paired(dys, tangents), paired(gradients, vs)
    tolerance = 1e-9 if all(a.dtype in DOUBLE for a in (*vs, *dys)) else 1e-4
    np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance)
