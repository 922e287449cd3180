"""Arrays of an arena, and large arrays that are used again when nobody holds them."""

import weakref

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.execute import arena
from graphgrad.execute.arena import Renewed, fixed_arrays
from graphgrad.execute.numpy_backend import NumpyBackend
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
    fixed = fixed_arrays(plan)
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
    monkeypatch.setattr(arena, "_COUNTED", False)
    assert not arena.is_renewed(large)
