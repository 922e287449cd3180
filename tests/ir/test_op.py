"""Ops: frozen values, one object for equal ones, and what a new type may be."""

import copy
import gc
import pickle
import re
from typing import ClassVar
from weakref import ref

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.errors import DTypeError
from graphgrad.ir import op as module
from graphgrad.ir.build import apply, build
from graphgrad.ir.facts import Derivative, Memory, Traits
from graphgrad.ir.op import OP_TYPES, Op, OpTypes, lasting, op_types

from .racing import race


@pytest.fixture(autouse=True)
def registry():
    """Op types that a test defines are known while it runs."""
    before = dict(OP_TYPES)
    yield
    OP_TYPES.clear()
    OP_TYPES.update(before)


class Scaled(Op, abstract=True):  # abstract: it is not put in the registry
    """y = factor * x + shift"""

    type = "Scaled"
    factor: float
    shift: float = 0.0
    unit: ClassVar[str] = "m"

    def infer(self, x):
        return (x,)


# --- attributes ----------------------------------------------------------------------------------


def test_attributes_are_the_annotations_in_order_by_place_by_name_or_by_default():
    assert Scaled.fields == ("factor", "shift")
    op = Scaled(2.0)
    assert op.attrs == {"factor": 2.0, "shift": 0.0}
    assert op is Scaled(2.0, 0.0) is Scaled(factor=2.0) is Scaled(shift=0.0, factor=2.0)
    assert repr(op) == "Scaled(factor=2.0, shift=0.0)"


@pytest.mark.parametrize(
    ("args", "kwargs", "said"),
    [
        ((), {}, "Scaled needs 'factor'"),
        ((), {"shift": 1.0}, "Scaled needs 'factor'"),
        ((1.0, 2.0, 3.0), {}, r"Scaled takes \('factor', 'shift'\), got \(1.0, 2.0, 3.0\)"),
        ((1.0,), {"offset": 3.0}, "Scaled takes .* {'offset': 3.0}"),
        ((1.0,), {"factor": 3.0}, r"Scaled takes .*got \(1.0,\) {'factor': 3.0}"),
        ((1.0, 2.0), {"shift": 3.0}, "Scaled takes .* {'shift': 3.0}"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(args, kwargs, said):
    with pytest.raises(TypeError, match=said):
        Scaled(*args, **kwargs)


@pytest.mark.parametrize("value", [[1.0], np.ones(2), {"a": 1}])
def test_an_attribute_that_can_change_is_refused(value):
    with pytest.raises(TypeError, match=r"Scaled got {'factor': .*use a tuple instead of a list"):
        Scaled(value)


def test_an_attribute_cannot_be_set():
    op = Scaled(2.0)
    with pytest.raises(AttributeError, match="Scaled is an op and never changes"):
        op.factor = 3.0
    assert op.factor == 2.0


def test_a_subclass_has_the_attributes_of_its_base_first_and_each_once():
    class Family(Op, abstract=True):
        axis: int
        keep: bool = False

    class Member(Family):
        axis: int = 5
        extra: str = "e"

    assert "Family" not in OP_TYPES
    assert Member.fields == ("axis", "keep", "extra")
    assert Member().attrs == {"axis": 5, "keep": False, "extra": "e"}
    assert Member(1, True, "f").attrs == {"axis": 1, "keep": True, "extra": "f"}


# --- one object for equal ops --------------------------------------------------------------------

DIFFERENT = [
    0,
    0.0,
    -0.0,
    False,
    0j,
    complex(0.0, -0.0),
    complex(-0.0, 0.0),
    np.float32(0.0),
    np.float32(-0.0),
    np.float64(0.0),
    np.complex64(0),
    np.complex64(complex(0.0, -0.0)),
    (0,),
    (0.0,),
    (-0.0,),
    ((False,),),
    ((0,),),
    "0",
    None,
]


def test_equal_numbers_that_are_not_the_same_make_ops_of_their_own():
    """1, 1.0 and True are equal and hash alike; so are 0.0 and -0.0."""
    ops = [Scaled(v) for v in DIFFERENT]
    assert len(set(map(id, ops))) == len(DIFFERENT)
    for value, op in zip(DIFFERENT, ops, strict=True):
        assert op is Scaled(value)
        assert repr(op.factor) == repr(value)


def test_numbers_that_are_printed_alike_make_ops_of_their_own():
    with np.printoptions(legacy="1.25"):
        assert repr(np.float64(0.5)) == repr(0.5)
        assert Scaled(np.float64(0.5)) is not Scaled(0.5)


def test_two_types_with_equal_attributes_are_two_ops():
    class Other(Scaled):
        pass

    assert Other(2.0) is not Scaled(2.0)
    assert type(Other(2.0)) is Other


def test_threads_that_make_an_op_at_once_get_the_same_object():
    made = race(lambda: [Scaled(1e6 + n) for n in range(300)])
    assert all(a is b for other in made for a, b in zip(made[0], other, strict=True))


def test_copies_of_an_op_are_the_op():
    op = Scaled((1.0, -0.0), 3)
    assert copy.copy(op) is copy.deepcopy(op) is pickle.loads(pickle.dumps(op)) is op


def test_ops_that_are_not_interned_are_each_their_own():
    class Holder(Op, interned=False):
        value: object

    array = np.ones(3)
    first, second = Holder(array), Holder(array)
    assert first is not second
    assert first.value is second.value is array


# --- how long an op lives ------------------------------------------------------------------------


def hold():
    """A function that is equal to itself alone."""
    return lambda: None


class Equal:
    """Equal to others of its kind."""

    def __eq__(self, other):
        return isinstance(other, Equal)

    def __hash__(self):
        return 1


def test_ops_of_plain_values_last():
    for value in [*DIFFERENT, b"0", np.dtype(float), gg.placeholder(()).type, ((1, (2, "a")),)]:
        assert lasting(Scaled(value))
    assert lasting(Scaled(Scaled(1.0)))


@pytest.mark.parametrize("make", [hold, Equal, lambda: (1, hold()), lambda: Scaled(hold())])
def test_what_may_hold_an_op_is_held_by_the_op_alone(make):
    value = make()
    op = Scaled(value)
    assert not lasting(op)
    assert op is Scaled(value) is Scaled(value, 0.0)
    assert op is not Scaled(value, 1) is not Scaled(value, 1.0)
    left = ref(op)
    del op, value
    gc.collect()
    assert left() is None
    assert not [key for key in Op._mortal if key[0] is Scaled]


def test_an_op_that_its_attribute_holds_ends():
    box = type("Box", (), {})()
    box.op = Scaled(box)
    left = ref(box.op)
    assert Scaled(box) is box.op
    del box
    gc.collect()
    assert left() is None


def test_equal_attributes_of_another_kind_or_hash_make_ops_of_their_own():
    first, same, other = Scaled(Equal()), Scaled(Equal()), Scaled((Equal(), 0.0))
    assert first is same
    assert Scaled((Equal(), -0.0)) is not other
    assert Scaled((Equal(), 0.0)) is other
    clash = Scaled._made_to_die((hold(), 0.0), hash_of(first))
    assert clash is not first


def hash_of(op):
    """What is remembered of an op."""
    ((_, hashed),) = (key for key, other in Op._mortal.items() if other is op)
    return hashed


def test_ops_that_are_not_interned_do_not_last():
    class Holder(Op, interned=False):
        value: object

    assert not lasting(Holder(1))
    assert not lasting(Scaled(Holder(1)))


# --- types by name -------------------------------------------------------------------------------


def test_the_registry_is_handed_out_as_a_copy():
    class Known(Op):
        pass

    found = op_types()
    assert found["Known"] is Known
    found.clear()
    assert op_types()["Known"] is Known


def test_a_type_of_the_same_name_in_another_module_is_refused():
    both = r"two op types named 'Tanh', in graphgrad\.ops\.[\w.]+ and elsewhere; set `type = ...`"
    with pytest.raises(ValueError, match=both):
        type("Tanh", (Op,), {"__module__": "elsewhere"})
    assert gg.tanh(gg.placeholder(())).node.op.__class__ is OP_TYPES["Tanh"]


def test_a_type_that_is_defined_again_in_its_module_takes_the_place_of_the_old_one():
    made = [type("Again", (Op,), {"__module__": "notebook"}) for _ in range(2)]
    assert OP_TYPES["Again"] is made[1]


def test_what_a_type_does_not_define_it_says_by_name():
    with gg.Graph():
        x = gg.placeholder((2,))
        y = apply(Scaled(2.0), x)
        with pytest.raises(DTypeError, match="Scaled has no gradient"):
            y.node.op.vjp(y.node, y)
    with pytest.raises(NotImplementedError, match=r"Scaled has no kernel"):
        Scaled(1.0).kernel(np, np.ones(2))
    with pytest.raises(NotImplementedError, match=r"Op has no infer"):
        Op().infer()
    assert list(Scaled.samples(np.random.default_rng(0))) == []


def test_what_is_said_of_a_kernel_is_not_said_of_another_one():
    class Kept(Op, abstract=True):  # it has no kernel: what it says is of those to come
        traits = Traits(idempotent=True)
        memory = Memory(view=True, alias=True)
        derivative = Derivative(relevance="moved")

    class First(Kept, abstract=True):
        shape_only = (1,)

        def kernel(self, xp, x):
            return x

    class Second(First, abstract=True):
        memory = Memory(reshapes=True)

        def kernel(self, xp, x):
            return -x

    assert (First.traits.idempotent, Second.traits.idempotent) == (True, False)
    assert (First.memory.alias, Second.memory.alias, Second.memory.reshapes) == (True, False, True)
    assert (First.shape_only, Second.shape_only) == ((1,), ())
    assert (Second.memory.view, Second.derivative.relevance) == (True, "moved")
    assert Second.from_onnx.__self__ is Second


def test_what_a_subclass_says_of_a_group_joins_what_its_bases_say():
    class Bounded(Op, abstract=True):
        traits = Traits(value_range=(0.0, 1.0), guards=True)

    class Left(Bounded, abstract=True):
        traits = Traits(commutes=True)

    class Right(Bounded, abstract=True):
        traits = Traits(value_range=(0.0, 2.0))

    class Both(Left, Right, abstract=True):  # the nearest in the order of its bases wins
        pass

    class Unguarded(Both, abstract=True):
        traits = Traits(guards=False)

    assert repr(Left.traits) == "Traits(value_range=(0.0, 1.0), guards=True, commutes=True)"
    assert repr(Both.traits) == "Traits(value_range=(0.0, 2.0), guards=True, commutes=True)"
    assert repr(Unguarded.traits) == "Traits(value_range=(0.0, 2.0), commutes=True)"
    assert repr(Bounded.traits) == "Traits(value_range=(0.0, 1.0), guards=True)"
    assert repr(Op.traits) == "Traits()"


def test_a_fact_outside_of_its_group_is_an_error_that_says_what_to_write():
    with pytest.raises(TypeError) as error:

        class Outside(Op):
            idempotent = rounds = True
            view = True

            @property
            def relevance(self):
                return "moved"

    said = str(error.value)
    assert re.match(r"Outside \(test_op\.py:\d+\) says idempotent, rounds, view, relevance", said)
    assert "    traits = Traits(idempotent=True, rounds=True)\n" in said
    assert "    memory = Memory(view=True)\n    derivative = Derivative(relevance=...)\n" in said
    assert "with `from graphgrad.extend import Traits, Memory, Derivative`; an attribute" in said
    assert "Outside" not in OP_TYPES


def test_a_group_is_of_the_class_and_has_the_facts_that_it_has():
    for wrong in (property(lambda self: Traits()), Memory(), {"commutes": True}):
        with pytest.raises(TypeError, match=r"Wrong .* which is a Traits\(\.\.\.\): the same for"):
            type("Wrong", (Op,), {"traits": wrong})
    with pytest.raises(TypeError, match=r"no fact 'comutes'\. Did you mean 'commutes'"):
        Traits(comutes=True)
    with pytest.raises(TypeError, match=r"no fact 'x'\. It has view, alias, reshapes"):
        Memory(x=True)
    with pytest.raises(AttributeError, match="Memory never changes"):
        Op.memory.view = True


# --- what infer gives ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gives", "shown"),
    [
        (lambda x: x, "float64[2]"),
        (lambda x: [x], "[float64[2]]"),
        (lambda x: (x.shape,), "((2,),)"),
        (lambda x: None, "None"),
    ],
)
def test_an_infer_that_gives_no_types_is_an_error_each_time(gives, shown):
    class Wrong(Op):
        def infer(self, x):
            return gives(x)

    with gg.Graph() as g:
        x = gg.placeholder((2,), name="x")
        for _ in range(2):  # what was refused is not remembered
            with pytest.raises(TypeError) as error:
                build(Wrong(), (x,))
            assert f"Wrong.infer returned {shown}" in str(error.value)
            assert "0: x:0: float64[2], built at test_op.py:" in error.value.__notes__[0]
        assert len(g) == 1


def test_an_op_infers_once_for_each_kind_of_inputs():
    asked = []

    class Watched(Op):
        def infer(self, *types):
            asked.append(types)
            return types[:1]

    with gg.Graph():
        x, y = gg.placeholder((2,)), gg.placeholder((2,), "int32")
        for inputs in [(x,), (y,), (x, y), (y, x), (x, x, y), (x,), (x, y), (x, x, y)]:
            node = build(Watched(), inputs)
            assert node.outputs[0].type is inputs[0].type
    assert len(asked) == 5


@pytest.mark.parametrize(
    "ask",
    [
        *(list, dict, len, lambda types: {**types}, lambda types: [*types.keys()]),
        *(lambda types: [*types.values()], lambda types: [*types.items()]),
        *(lambda types: "Tanh" in types, lambda types: types["Tanh"]),
        *(lambda types: types.get("Tanh"), lambda types: types.get("Nothing")),
    ],
)
def test_all_op_types_are_imported_where_that_matters(ask, monkeypatch):
    types, cls = OpTypes(), OP_TYPES["Tanh"]
    monkeypatch.setattr(module, "_import_all", lambda: types.setdefault("Tanh", cls))
    assert ask(types) in (cls, True, None, 1, ["Tanh"], [cls], [("Tanh", cls)], {"Tanh": cls})
    assert types.here("Tanh") is cls


def test_names_of_users_and_what_is_imported_bring_no_more(monkeypatch):
    types = OpTypes(own=Op, Tanh=OP_TYPES["Tanh"])
    monkeypatch.setattr(module, "_import_all", lambda: pytest.fail("imports all"))
    assert "own" in types
    assert types["Tanh"] is types.get("Tanh") is OP_TYPES["Tanh"]
    assert "clip" not in types
    assert types.get("clip") is None
