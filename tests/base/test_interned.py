"""What is interned is one object while anybody holds it, and only the latest are kept longer."""

from __future__ import annotations

import gc
from weakref import ref

import graphgrad as gg
from graphgrad.base.interned import Interned
from graphgrad.ir import types
from graphgrad.ir.build import KNOWN
from graphgrad.ir.op import MADE
from graphgrad.ir.types import tensor_type


class Thing:
    pass


def test_an_object_is_the_only_one_of_its_key_while_it_lives():
    things = Interned(2)
    a = things.add("a", Thing)
    others = [ref(things.add(k, Thing)) for k in "bcd"]
    assert things.get("a") is None  # not among the latest
    assert things.add("a", Thing) is a
    assert things.get("a") is a
    del a
    for k in "ef":
        things.add(k, Thing)
    gc.collect()
    assert [other() for other in others] == [None, None, None]
    assert len(things) <= 2


def test_the_latest_are_kept_though_nobody_holds_them():
    things = Interned(2)
    kept = ref(things.add("a", Thing))
    gc.collect()
    assert things.get("a") is kept()


def test_ever_new_ops_and_types_do_not_pile_up():
    slices, add = gg.op_types()["Slice"], gg.op_types()["Add"]()
    held = slices(((0, 1, None),)), tensor_type((1, 2, 3), "float64")
    most = types._interned._most + 2 * max(MADE, KNOWN)
    gc.collect()
    before = len(types._interned)  # which other tests made, and somebody holds
    with gg.Graph() as g:
        x = gg.placeholder((most + 9,))
    for n in range(most):
        slices(((n, n + 1, None),))
        tensor_type((n, 1, 2, 3), "float64")
    for n in range(KNOWN + 9):
        with gg.Graph():
            x = gg.placeholder((n, 1))
            x + x
    del g, x
    gc.collect()
    assert len(slices._made) <= MADE + 1
    assert len(add._types) <= KNOWN
    assert len(types._interned) <= before + most
    assert slices(((0, 1, None),)) is held[0]
    assert tensor_type((1, 2, 3), "float64") is held[1]
