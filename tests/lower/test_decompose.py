"""Ops taken apart: the same values, as element-wise nodes and reductions."""

from __future__ import annotations

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.execute.kernels import Kernels, one_call_per_node
from graphgrad.ir.build import build
from graphgrad.ir.program import Program
from graphgrad.ir.verify import verify_program
from graphgrad.lower.decompose import decompose
from graphgrad.ops.elementwise.accumulate import AddN
from graphgrad.ops.older_numpy import ROOTS

OPS = (
    *("Softmax", "LogSoftmax", "ReduceLogSumExp", "SoftmaxCrossEntropyWithLogits", "OneHot"),
    *("SparseSoftmaxCrossEntropyWithLogits", "OneHotLike", "TieShares", "ExpShares", "Power"),
)


def _run(program, arrays):
    with np.errstate(all="ignore"):
        return one_call_per_node(program, Kernels(np))(*arrays)


def _cases():
    for name in OPS:
        samples = gg.op_types()[name].samples(np.random.default_rng(0))
        for i, (op, arrays) in enumerate(samples):
            yield pytest.param(op, [np.asarray(a) for a in arrays], id=f"{name}-{i}")


@pytest.mark.parametrize(("op", "arrays"), list(_cases()))
def test_the_parts_compute_what_the_op_does(op, arrays):
    with gg.Graph():
        xs = [gg.placeholder(a.shape, a.dtype) for a in arrays]
        program = Program(xs, build(op, tuple(xs)).outputs)
    parts = decompose(program)
    verify_program(parts)
    taken = all(a.size for a in arrays) and op.type != "Power"
    assert (parts is not program) == taken
    for a, b in zip(_run(parts, arrays), _run(program, arrays), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("exponent", [2, 3, 4, -1, -2, 0.5])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_known_powers(exponent, dtype):
    special = [0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 1e-30, -1e30]
    array = np.array(special, dtype)
    with gg.Graph():
        x = gg.placeholder(array.shape, dtype)
        program = Program([x], [gg.power(x, exponent)])
    parts = decompose(program)
    assert ("Power" in [n.type for n in parts.nodes]) == (exponent == 0.5 and not ROOTS)
    (found,), (wanted,) = _run(parts, [array]), _run(program, [array])
    np.testing.assert_allclose(found, wanted, rtol=4 * np.finfo(dtype).eps)


def test_integers_to_known_powers():
    with gg.Graph():
        x = gg.placeholder((3,), "int64")
        program = Program([x], [gg.power(x, 3)])
    assert _run(decompose(program), [np.array([2, -3, 1 << 40])])[0].tolist() == [
        8,
        -27,
        int(np.power(np.int64(1 << 40), 3)),
    ]


def test_labels_that_are_no_class():
    with gg.Graph():
        x, labels = gg.placeholder((3, 4)), gg.placeholder((3,), "int64")
        program = Program([x, labels], [gg.nn.cross_entropy(x, labels)])
    arrays = [np.random.default_rng(0).normal(size=(3, 4)), np.array([3, 4, -1])]
    (found,), (wanted,) = _run(decompose(program), arrays), _run(program, arrays)
    np.testing.assert_allclose(found, wanted)
    assert np.isnan(found).tolist() == [False, True, True]


def test_more_classes_than_the_labels_can_name():
    with gg.Graph():
        labels = gg.placeholder((2,), "uint8")
        program = Program([labels], [gg.nn.one_hot(labels, 300)])
    arrays = [np.array([0, 255], np.uint8)]
    np.testing.assert_array_equal(_run(decompose(program), arrays)[0], _run(program, arrays)[0])


def test_unknown_lengths_stay():
    with gg.Graph():
        x = gg.placeholder(("N", 3))
        program = Program([x], [gg.nn.softmax(x)])
    assert decompose(program) is program


def test_a_sum_of_many_terms_is_one_of_a_few_at_a_time_in_the_same_order():
    with gg.Graph():
        xs = [gg.placeholder((3,), "float32") for _ in range(600)]
        program = Program(xs, build(AddN(), tuple(xs)).outputs)
    found = decompose(program)
    assert [len(n.inputs) for n in found.nodes] == [256, 256, 90]
    arrays = [np.float32([i, 0.1, 1e-3 * i]) for i in range(600)]
    np.testing.assert_array_equal(_run(found, arrays), _run(program, arrays))


def test_the_log_of_a_sum_over_no_axes_is_never_minus_zero():
    with gg.Graph():
        x = gg.placeholder(())
        program = Program([x], [gg.logsumexp(x)])
    for number in (-0.0, 1.5, -np.inf, np.inf, np.nan):
        (found,), (wanted,) = (_run(p, [np.float64(number)]) for p in (decompose(program), program))
        np.testing.assert_array_equal(found, wanted)
        assert np.signbit(found) == np.signbit(wanted)


def test_roots_of_float16_stay_powers():
    """NumPy's power of -inf is inf there, its root is NaN."""
    with gg.Graph():
        x = gg.placeholder((3,), "float16")
        program = Program([x], [gg.power(x, 0.5)])
    assert decompose(program) is program


@pytest.mark.parametrize("exponent", [-1, -2, 0.5])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_powers_of_complex_numbers_stay_where_parts_would_be_other_numbers(exponent, dtype):
    with gg.Graph():
        x = gg.placeholder((3,), dtype)
        program = Program([x], [gg.power(x, exponent)])
    assert decompose(program) is program


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("shape", [(3, 5), (2, 5, 3), (4, 4)])
@pytest.mark.parametrize("k", [-2, 0, 1])
def test_triangles_and_diagonals(shape, k, dtype):
    """Nothing is left of them but a comparison, and NaN beside them stays outside."""
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    dy = np.diagonal(x, k, -2, -1).copy()
    with gg.Graph():
        t, d = gg.placeholder(shape, dtype), gg.placeholder(dy.shape, dtype)
        across = build(gg.op_types()["DiagonalGrad"](k, x.ndim - 2, x.ndim - 1), (d, t)).outputs
        program = Program([t, d], [gg.tril(t, k), gg.triu(t, k), *across])
    parts = decompose(program)
    left = [n.type for n in parts.nodes if n.type in ("Tril", "Triu", "DiagonalGrad")]
    assert left == ["DiagonalGrad"] * (dy.shape[-1] not in shape[-2:])
    for a, b in zip(_run(parts, [x, dy]), _run(program, [x, dy]), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    if dtype != "int32":
        x[np.triu(np.ones(shape, bool), k + 1)] = np.nan
        assert np.isfinite(_run(parts, [x, dy])[0]).all()
