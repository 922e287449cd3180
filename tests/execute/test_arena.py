"""Arrays of an arena, and large arrays that are used again when nobody holds them."""

import sys
import warnings
import weakref

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.execute.kernels import Kernels, one_call_per_node
from graphgrad.execute.numpy.backend import NumpyBackend
from graphgrad.execute.run import arena
from graphgrad.execute.run.arena import Renewed, fixed_arrays
from graphgrad.execute.run.checked import checked_loop
from graphgrad.execute.run.looped import looped
from graphgrad.execute.run.straight import straight_line
from graphgrad.ir.program import Program
from graphgrad.ir.types import tensor_type
from graphgrad.lower.memory import ALIGNMENT

TYPE = tensor_type((100,), "float64")


def test_places_are_aligned_and_in_one_block():
    with gg.Graph():
        x = gg.placeholder((5, 7), "float32")
        a = gg.exp(x)
        y = gg.sum(gg.sin(a) @ a.T)
    plan = NumpyBackend().plan(Program([x], [y]))
    several = [fixed_arrays(plan) for _ in range(8)]  # in memory of several alignments
    for fixed in several:
        places = [fixed[p.slot] for p in plan.places]
        assert places
        assert len({id(a.base) for a in places}) == 1
        assert all(a.ctypes.data % ALIGNMENT == 0 and a.flags.c_contiguous for a in places)
        assert all(fixed[step.outputs[0]].base is not None for step in plan.views)


def test_an_array_that_nobody_holds_is_used_again():
    new = Renewed(TYPE)
    a = new()
    at = a.ctypes.data
    a.flags.writeable = False
    del a
    again = new()
    assert again.ctypes.data == at
    assert again.flags.writeable


@pytest.mark.parametrize(
    "hold",
    [lambda a: a, lambda a: a[3:5], lambda a: a.reshape(10, 10).T, memoryview],
    ids=["itself", "part", "view", "buffer"],
)
def test_an_array_that_somebody_can_see_is_not(hold):
    new = Renewed(TYPE)
    a = new()
    a[...] = 7
    held, at = hold(a), a.ctypes.data
    del a
    other = new()
    assert other.ctypes.data != at
    other[...] = 9
    assert (np.asarray(held) == 7).all()


def test_an_array_that_can_be_found_again_is_not():
    new = Renewed(TYPE)
    a = new()
    at, found = a.ctypes.data, weakref.ref(a)
    del a
    assert found() is not None
    assert new().ctypes.data != at


def test_two_take_turns():
    new = Renewed(TYPE)
    latest, seen = None, set()
    for _ in range(10):
        latest = new()
        seen.add(latest.ctypes.data)
    assert len(seen) == 2


def test_the_two_latest_are_remembered():
    new = Renewed(TYPE)
    held = [new() for _ in range(4)]
    counts = [sys.getrefcount(array) for array in held]
    assert [n - counts[0] for n in counts] == [0, 0, 1, 1]


def test_an_array_that_was_given_another_dtype_is_not_used_again():
    new = Renewed(TYPE)
    a = new()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        a.dtype = np.int64
    del a
    assert new().dtype == np.float64


def test_an_array_whose_shape_was_changed_is_not_used_again():
    new = Renewed(TYPE)
    a = new()
    a.resize((50,), refcheck=False)
    del a
    assert new().shape == (100,)


def test_counting_is_not_trusted_elsewhere(monkeypatch):
    large = tensor_type((arena.LARGE,), "float64")
    assert arena.is_renewed(large) is arena._COUNTED
    assert not arena.is_renewed(TYPE)
    assert not arena.is_gathered(tensor_type((None,), "float64"))
    monkeypatch.setattr(arena, "_COUNTED", False)
    assert not arena.is_renewed(large)


@pytest.mark.parametrize("make", [lambda p: straight_line(p)[0](), looped, checked_loop])
def test_activations_lodge_in_the_results_that_come_after_them(make):
    """L layers need L + few arrays, not one for each activation and one for each gradient."""
    size, count = 256, 12
    with gg.Graph():
        h = x = gg.placeholder((size, size), name="x")
        ws = [gg.placeholder((size, size)) for _ in range(count)]
        for w in ws:
            h = gg.nn.relu(h @ w)
        outputs = gg.gradients(gg.sum(h), ws)
    plan = gg.compile([x, *ws], outputs, backend="numpy").plans[0]
    assert sum(len(s.lodged) for s in plan.steps) >= count - 2
    assert plan.peak <= (count + 3) * 8 * size * size
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(size, size)) / 16 for _ in range(count + 1)]
    run = make(plan)
    found = [run(*arrays) for _ in range(3)]  # the second and third with arrays of the first
    expected = one_call_per_node(Program([x, *ws], outputs), Kernels(np))(*arrays)
    for one in found:
        for got, want in zip(one, expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


def test_a_lodger_may_be_of_another_type():
    with gg.Graph():
        x = gg.placeholder((300, 300), "float32")
        wide = gg.cast(x @ x @ x, "float64")
        out = wide @ wide
    f = gg.compile([x], out, backend="numpy")
    (plan,) = f.plans
    assert {t.dtype for s in plan.steps for _, _, t in s.lodged} == {np.dtype("float32")}
    a = np.random.default_rng(0).normal(size=(300, 300)).astype("float32")
    want = (a @ a @ a).astype("float64")
    np.testing.assert_array_equal(f(a), want @ want)


def test_an_array_that_was_given_other_strides_is_not_used_again():
    with gg.Graph():
        x = gg.placeholder((512, 512))
        f = gg.compile([x], gg.exp(x), backend="numpy")
    a = np.random.default_rng(0).normal(size=(512, 512))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for _ in range(3):
            found = f(a)
            np.testing.assert_array_equal(found, np.exp(a))
            found.strides = (0, 0)
            del found
