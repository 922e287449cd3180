"""Shapes, dtypes and types: interned, canonical, and what two lengths are together."""

import enum
import itertools
import pickle

import numpy as np
import pytest

from graphgrad.base.errors import DTypeError, ShapeError
from graphgrad.base.length import Length
from graphgrad.ir.types import (
    as_dtype,
    as_shape,
    broadcast,
    broadcast_dims,
    compatible,
    inexact,
    merge_dims,
    result_dtype,
    size_of,
    tensor_type,
    type_of_array,
)

from ..each import together
from .racing import race

DIMS = [0, 1, 2, 3, None, Length("N"), Length("M")]
PAIRS = [*itertools.product(DIMS, DIMS)]
DTYPES = [
    "bool",
    "int8",
    "uint8",
    "int32",
    "uint64",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


def values(*dims):
    """Every way to give the unknown lengths a value; names stand for one length each."""
    names = [*dict.fromkeys(d for d in dims if isinstance(d, Length))]
    loose = [i for i, d in enumerate(dims) if d is None]
    for chosen in itertools.product(range(4), repeat=len(names) + len(loose)):
        named = dict(zip(names, chosen))
        free = dict(zip(loose, chosen[len(names) :]))
        yield named, [free.get(i, named.get(d, d)) for i, d in enumerate(dims)]


# --- one object for equal types ------------------------------------------------------------------


def test_equal_types_are_one_object_however_they_are_written():
    one = tensor_type((2, "N", None), np.float32)
    for dtype in ["float32", "f4", ">f4", "<f4", np.dtype("f4"), np.dtype(">f4"), np.float32]:
        assert tensor_type((2, "N", None), dtype) is one
    assert type_of_array(np.zeros((2, 3), ">f4")) is tensor_type((2, 3), "float32")
    assert tensor_type((2,), "float32") is not tensor_type((2,), "float64")
    assert tensor_type((2,), "float32") is not tensor_type((None,), "float32")


def test_a_type_is_the_same_object_after_pickling():
    for dtype in DTYPES:
        t = tensor_type((3, None, "N"), dtype)
        assert pickle.loads(pickle.dumps(t)) is t


def test_threads_that_ask_at_once_get_the_same_object():
    def ask():
        return [tensor_type((n, 77, "threads"), "int16") for n in range(300)]

    first, *others = race(ask)
    assert all(a is b for other in others for a, b in zip(first, other, strict=True))


def test_a_type_tells_what_it_is():
    t = tensor_type((2, None, "N"), "float32")
    assert repr(t) == "float32[2, ?, N]"
    assert repr(tensor_type((), "bool")) == "bool[]"
    assert [tensor_type(s, "int8").static for s in [(2, 0), (), ("N",), (2, None)]] == [
        True,
        True,
        False,
        False,
    ]
    assert [tensor_type((), d).differentiable for d in DTYPES] == [
        d.startswith(("float", "complex")) for d in DTYPES
    ]


def test_lengths_of_any_name_are_shown_on_one_line():
    t = tensor_type(as_shape(("two\nlines", "\u202eturned", "λ", "half \ud800")), "int8")
    assert repr(t) == r"int8[two\nlines, \u202eturned, λ, half \ud800]"
    with pytest.raises(ShapeError, match=r"shapes \[two\\nlines, 2\] and \[3\] do not broadcast"):
        broadcast([("two\nlines", 2), (3,)])


# --- what a user writes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "shape"),
    [
        ((), ()),
        (3, (3,)),
        (np.int32(3), (3,)),
        ("N", (Length("N"),)),
        (Length("N") * 2, (Length("2*N"),)),
        (["2*N", 3], (Length("2*N"), 3)),
        (None, (None,)),
        ([2, None], (2, None)),
        (np.array([2, 3]), (2, 3)),
        (range(2, 4), (2, 3)),
        ((True, np.int64(4)), (1, 4)),
    ],
)
def test_a_shape_is_lengths_in_any_sequence_or_one_length(written, shape):
    found = as_shape(written)
    assert found == shape
    assert all(type(a) is type(b) for a, b in zip(found, shape, strict=True))


def test_a_length_of_a_subclass_of_int_becomes_an_int():
    """Types are one object for all who ask: the first to ask must not leave his class in it."""

    class Size(enum.IntEnum):
        WIDTH = 7919

    assert type(as_shape((Size.WIDTH,))[0]) is int
    assert type(as_shape(Size.WIDTH)[0]) is int


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (3.5, "a shape is a sequence of lengths, or one length, got 3.5"),
        ({3, 4}, "a shape is a sequence of lengths, or one length, got {3, 4}"),
        ({3: 4}, "a shape is a sequence of lengths"),
        (b"ab", "a shape is a sequence of lengths"),
        ((2, 3.0), r"a length is an int, None or a name, got 3.0 in \(2, 3.0\)"),
        ([[2]], r"a length is an int, None or a name, got \[2\] in \[\[2\]\]"),
        ((2, -1), r"a length is never negative, got -1 in \(2, -1\)"),
        (("",), "a named length needs a name"),
        (("7",), "the length '7' is a number: give it as an int"),
        ((-Length("N") - 1,), "a length is never negative, got -N - 1"),
    ],
)
def test_what_is_no_shape_is_refused(written, said):
    with pytest.raises(ShapeError, match=said):
        as_shape(written)


@pytest.mark.parametrize("dtype", [object, "S3", "U2", "M8[s]", [("a", "f4")]])
def test_dtypes_that_are_no_numbers_are_refused(dtype):
    for _ in range(2):  # the refusal is not remembered as an answer
        with pytest.raises(DTypeError, match="is not supported: tensors hold numbers and bools"):
            as_dtype(dtype)


def test_what_is_no_dtype_is_refused():
    with pytest.raises(DTypeError, match=r"^float8_e4m3fn is not supported: use bfloat16"):
        as_dtype("float8_e4m3fn")
    with pytest.raises(DTypeError, match="'float23' is not a dtype"):
        as_dtype("float23")


# --- lengths together ----------------------------------------------------------------------------


@together(PAIRS)
def test_two_lengths_broadcast_to_what_every_value_of_them_gives(a, b):
    possible = []
    for named, (x, y) in values(a, b):
        if x == y or 1 in (x, y):
            possible.append((named, y if x == 1 else x))
    if not possible:
        with pytest.raises(ShapeError, match=f"lengths {a} and {b} do not broadcast"):
            broadcast_dims(a, b)
        return
    found = broadcast_dims(a, b)
    assert found == broadcast_dims(b, a)
    if found is None:
        assert len({length for _, length in possible}) > 1
    assert all(found is None or named.get(found, found) == length for named, length in possible)


@together(
    [
        (s,)
        for n in (1, 2, 3)
        for s in itertools.product([(), (1,), (2,), (0,), (3, 1), (3, 2)], repeat=n)
    ],
)
def test_known_shapes_broadcast_as_numpy_says(shapes):
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ShapeError):
            broadcast(shapes)
    else:
        assert broadcast(shapes) == expected


def test_shapes_of_other_ranks_are_aligned_at_the_end():
    assert broadcast([("N", 3), (3,)]) == ("N", 3)
    assert broadcast([(None, 1), ("N", 4, 3)]) == ("N", 4, 3)
    assert broadcast([(None, 1), ("N", None, 3)]) == ("N", None, 3)
    assert broadcast([(1, "N"), (None, 1), (2, 1)]) == (2, "N")


def test_shapes_that_do_not_broadcast_are_shown_whole():
    said = r"shapes \[\?, 3\] and \[N, 4\] do not broadcast: lengths 3 and 4 do not broadcast"
    with pytest.raises(ShapeError, match=said):
        broadcast([(None, 3), ("N", 4)])


@together(PAIRS)
def test_a_length_that_is_known_in_two_ways(a, b):
    possible = [named for named, (x, y) in values(a, b) if x == y]
    if isinstance(a, int) and isinstance(b, int) and a != b:
        with pytest.raises(ShapeError, match=f"lengths {a} and {b} differ"):
            merge_dims(a, b)
        return
    found = merge_dims(a, b)
    known = [d for d in (a, b) if d is not None]
    numbers = [d for d in known if isinstance(d, int)]
    assert found == (numbers or known or [None])[0]
    assert possible


@together(PAIRS)
def test_shapes_are_compatible_if_some_values_make_them_equal(a, b):
    possible = any(x == y for _, (x, y) in values(a, b))
    assert compatible((5, a), (5, b)) == possible
    assert not compatible((a,), (a, b))


def test_the_number_of_elements():
    assert size_of(()) == 1
    assert size_of((2, 3)) == 6
    assert size_of((2, 0)) == 0
    assert size_of((0, None)) is None
    assert size_of((2, "N")) is None


# --- promotion -----------------------------------------------------------------------------------


@together(itertools.product(DTYPES, DTYPES))
def test_dtypes_are_promoted_as_numpy_does(a, b):
    assert result_dtype([np.dtype(a), np.dtype(b)]) == np.result_type(a, b)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", [True, 7, 7.0, 7j])
def test_python_numbers_are_weak(dtype, number):
    expected = (np.zeros(1, dtype) + number).dtype
    assert result_dtype([np.dtype(dtype), number]) == expected
    assert result_dtype([number, np.dtype(dtype)]) == expected


def test_python_numbers_alone_have_the_dtype_numpy_gives_them():
    assert result_dtype([2, 3]) == np.int64
    assert result_dtype([2, 3.0]) == np.float64
    assert result_dtype([True, True]) == np.bool_
    assert result_dtype([1j, 2]) == np.complex128


def test_what_a_square_root_gives():
    assert inexact(as_dtype("float16")) == np.float16
    assert inexact(as_dtype("complex64")) == np.complex64
    assert inexact(as_dtype("int8")) == inexact(as_dtype("bool")) == np.float64
