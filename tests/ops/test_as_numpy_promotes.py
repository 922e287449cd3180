"""Every function that NumPy has as a ufunc gives the dtype that NumPy gives, for all dtypes."""

import warnings
from itertools import product

import numpy as np
import pytest

import graphgrad as gg

from ..each import every

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DTYPES = ("bool", *INTEGERS, "float16", "float32", "float64", "complex64", "complex128")
UFUNCS = sorted(
    name
    for name in dir(gg)
    if isinstance(ufunc := getattr(np, name, None), np.ufunc) and ufunc.signature is None
)
SHIFTS = {"bitwise_left_shift", "bitwise_right_shift", "left_shift", "right_shift"}
"""Bools have no bits to shift; NumPy makes them int8."""

TAKES_MORE = {"deg2rad", "degrees", "fabs", "rad2deg", "radians"}
"""They take complex numbers too."""


NUMBERS = (True, 3, 2.5, 2j)
"""Python's numbers, of which the kind alone counts."""


def of_numpy(name, dtypes):
    """The dtypes of NumPy's results, of dtypes and Python numbers; None: an error."""
    operands = [np.ones(2, d) if isinstance(d, str) else d for d in dtypes]
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = getattr(np, name)(*operands)
    except TypeError:
        return None
    found = [y.dtype for y in (made if isinstance(made, tuple) else (made,))]
    return None if np.dtype(object) in found else found


def of_graphgrad(name, dtypes):
    """The dtypes of graphgrad's; None: an error."""
    with gg.Graph():
        operands = [gg.placeholder((2,), d) if isinstance(d, str) else d for d in dtypes]
        try:
            made = getattr(gg, name)(*operands)
        except gg.DTypeError:
            return None
        return [y.dtype for y in (made if isinstance(made, tuple | list) else (made,))]


def wanted(name, dtypes):
    """What graphgrad gives: what NumPy does, but for what is said here."""
    found = of_numpy(name, dtypes)
    kinds = {np.asarray(d).dtype.kind if d in NUMBERS else np.dtype(d).kind for d in dtypes}
    if name == "reciprocal" and kinds <= set("biu"):
        return None  # 1 / n is not an integer
    if name in SHIFTS and kinds == {"b"}:
        return None
    if name in TAKES_MORE and "c" in kinds:
        return [np.dtype(dtypes[0]) if name != "fabs" else gg.abs(np.ones(2, dtypes[0])).dtype]
    if name in ("conj", "conjugate") and kinds == {"b"}:
        return [np.dtype(bool)]
    if name == "ldexp" and dtypes[1] == "uint64" and "c" not in kinds:
        return wanted(name, (dtypes[0], "int64"))
    if name == "ldexp" and type(dtypes[0]) is int and found:
        return [np.dtype("float64")]  # a number of its own; NumPy's float16 overflows at 2**16
    return found


@pytest.mark.parametrize("name", every(2, UFUNCS))
def test_dtypes_are_those_of_numpy(name):
    for dtypes in product(DTYPES, repeat=getattr(np, name).nin):
        assert of_graphgrad(name, dtypes) == wanted(name, dtypes), dtypes


@pytest.mark.parametrize("name", [n for n in UFUNCS if getattr(np, n).nin == 2])
def test_dtypes_with_python_numbers_are_those_of_numpy(name):
    for dtype, number in product(DTYPES, NUMBERS):
        for dtypes in ((dtype, number), (number, dtype)):
            assert of_graphgrad(name, dtypes) == wanted(name, dtypes), dtypes


def edges(dtype, shift):
    """Numbers at the ends of what a dtype holds, and around zero."""
    if dtype == "bool":
        return np.roll([False, True, True, False, True, False], shift)
    info = np.iinfo(dtype)
    middle = info.max // 2 + 1  # 2**63 of uint64, which rounds to the same double as 2**63 - 1
    return np.roll(np.array([0, 1, info.max, info.min, middle, middle - 1], dtype), shift)


@pytest.mark.parametrize(
    "name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
)
def test_integers_are_compared_by_value_whatever_their_types(name):
    pairs = [(a, b, s) for a, b in product(("bool", *INTEGERS), repeat=2) for s in range(6)]
    operands = [(edges(a, 0), edges(b, s)) for a, b, s in pairs]
    with gg.Graph():
        xs = [[gg.placeholder(a.shape, a.dtype) for a in pair] for pair in operands]
        ys = [getattr(gg, name)(a, b) for a, b in xs]
        run = gg.compile([x for both in xs for x in both], ys, backend="numpy")
    results = run(*[a for both in operands for a in both])
    for (a, b), got in zip(operands, results, strict=True):
        np.testing.assert_array_equal(got, getattr(np, name)(a, b), f"{a.dtype}, {b.dtype}")


def test_nor_does_it_matter_which_is_a_number_or_an_array():
    big = np.array([2**63, 2**63 - 1, 5], "uint64")
    with gg.Graph():
        x = gg.placeholder((3,), "int64")
        found = [
            big == x,
            gg.less(x, big),
            gg.greater(2**63 - 1, x),
            gg.less_equal(big, [7, -1, 5]),
        ]
        run = gg.compile(x, found, backend="numpy")
    a = np.array([2**63 - 1, 2**63 - 1, -5])
    expected = [big == a, a < big, a < 2**63 - 1, big <= np.array([7, -1, 5])]
    np.testing.assert_array_equal(run(a), expected)


def test_complex_numbers_are_rounded_part_by_part():
    x = np.array([0.5 + 1.5j, -2.6 - np.inf * 1j])
    np.testing.assert_array_equal(gg.evaluate(gg.rint(x)), np.rint(x))
