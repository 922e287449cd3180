"""Values that later loops compute again: the same bits, fewer arrays."""

from __future__ import annotations

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.program import Program
from graphgrad.ir.verify import verify_program
from graphgrad.lower.loop_ir import Fused
from graphgrad.lower.recompute import MOST

from .fusing import fuse, same_values

N = 256  # 512 KiB of float64 in a square matrix


def _fused(inputs, outputs, cost=1) -> list[tuple[int, int, list[str]]]:
    """Of each group: how many arrays it reads and writes, and its ops."""
    plain = Program(inputs, outputs)
    fused = fuse(
        plain,
        lambda node: node.op.elementwise,
        lambda node: node.type == "ReduceSum",
        least=1,
        free=("Constant", "Transpose"),
        cost=None if cost is None else lambda node: cost,
    )
    verify_program(fused)
    same_values(plain, fused)
    ops = [n.op for n in fused.nodes if type(n.op) is Fused]
    return [
        (len(op.program.inputs), len(op.program.outputs), [n.type for n in op.program.nodes])
        for op in ops
    ]


def _two_loops(n=N, of_later=lambda u, s, m: u * s + m):
    """A loop that leaves h, u and s, a product of h, and a loop that reads u, s and the product."""
    with gg.Graph():
        z = gg.placeholder((n, n))
        u = z + 1.0
        s = gg.tanh(u)
        h = gg.sin(s)
        return [z], [of_later(u, s, h @ h)]


def test_what_is_made_of_what_is_read_is_computed_again():
    first, later = _fused(*_two_loops())
    assert first == (1, 2, ["Constant", "Add", "Tanh", "Sin"])
    assert later == (2, 1, ["Tanh", "Multiply", "Add"])


def test_without_costs_it_is_read():
    first, later = _fused(*_two_loops(), cost=None)
    assert first[1] == 3
    assert later[0] == 3


def test_what_takes_longer_than_reading_it_is_read():
    assert _fused(*_two_loops(), cost=MOST)[0][1] == 2
    assert _fused(*_two_loops(), cost=MOST + 1)[0][1] == 3


def test_constants_take_no_time():
    with gg.Graph():
        z = gg.placeholder((N, N))
        u = z + 1.0
        s = gg.tanh(u) * 2.0
        h = gg.sin(s)
        y = u * s + h @ h
    assert _fused([z], [y], cost=MOST // 2)[0][1] == 2
    assert _fused([z], [y], cost=MOST // 2 + 1)[0][1] == 3


@pytest.mark.parametrize("shape", [(N, N), (1, N, N), (N, 1, N)])
def test_axes_of_one_element_change_nothing(shape):
    with gg.Graph():
        z = gg.placeholder(shape)
        u = z + 1.0
        s = gg.tanh(u)
        h = gg.reshape(gg.sin(s), (N, N))
        y = u * s + gg.reshape(h @ h, shape)
        (plan,) = gg.compile(z, y, backend="llvm", num_threads=1).plans
    loops = [step.node.op for step in plan.steps if type(step.node.op) is Fused]
    assert [len(op.program.outputs) for op in loops] == [2, 1]  # h and u, and the result


def test_what_is_made_of_what_is_computed_for_rows_is_read():
    with gg.Graph():
        z = gg.placeholder((N, N))
        u = z + 1.0
        r = gg.sum(u, 1, True)
        s = u * gg.tanh(r)
        h = gg.sin(s)
        (plan,) = gg.compile(z, u * s * r + h @ h, backend="llvm", num_threads=1).plans
    loops = [step.node.op for step in plan.steps if type(step.node.op) is Fused]
    assert [len(op.program.outputs) for op in loops] == [4, 1]  # u, r, s and h, and the result


def test_what_is_computed_again_is_left_once():
    with gg.Graph():
        z = gg.placeholder((N, N))
        u = z + 1.0
        k = gg.tanh(u)
        s, d = k * 2.0, gg.cos(u)
        y = u * s * d + (s + d) @ k
    first, later = _fused([z], [y])
    assert first[1] == 3  # u, and what the product is of
    assert later[:2] == (2, 1)
    assert {"Tanh", "Cos"} <= set(later[2])


def test_small_arrays_are_read():
    assert _fused(*_two_loops(N - 8))[0][1] == 3


def test_what_would_have_to_be_held_longer_is_not_computed_again():
    (first,) = _fused(*_two_loops(of_later=lambda u, s, m: s + m))
    assert first[:2] == (1, 2)


def test_what_is_read_turned_is_read():
    first, _ = _fused(*_two_loops(of_later=lambda u, s, m: u * gg.transpose(s) + m))
    assert first[1] == 3


def test_what_others_read_too_is_read():
    def other(u, s, m):
        return u * s + m + s @ s

    assert _fused(*_two_loops(of_later=other))[0][1] == 3


def test_sums_are_not_computed_again():
    with gg.Graph():
        z = gg.placeholder((N, N))
        u = z + 1.0
        s = u / gg.sum(u * u, 1, True)
        h = gg.sin(s)
        f = gg.compile(z, u * s * (h @ h), backend="llvm", num_threads=1)
    (plan,) = f.plans
    loops = [step.node.op for step in plan.steps if type(step.node.op) is Fused]
    sums = [sum(n.type == "ReduceSum" for n in op.program.nodes) for op in loops]
    assert sums == [1, 0]
    assert len(loops[0].program.outputs) == 3  # h, u, s


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_layer_with_gelu_keeps_one_array_for_its_gradient(dtype):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s).astype(dtype) for s in ((512, 8), (8, 512), (512, 8))]
    with gg.Graph():
        x, w, v = (gg.placeholder(a.shape, dtype) for a in arrays)
        y = gg.nn.gelu(x @ w + 0.5, approximate=True) @ v
        outputs = [y, *gg.gradients(gg.sum(y * y), [x, w, v])]
        plain = gg.compile([x, w, v], outputs, backend="numpy", optimize=False)
        f = gg.compile([x, w, v], outputs, backend="llvm", num_threads=1)
    size = 512 * 512 * np.dtype(dtype).itemsize
    assert f.peak_bytes < 3.5 * size  # what is kept, h and its gradient
    for a, b in zip(f(*arrays), plain(*arrays), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * abs(b).max())
