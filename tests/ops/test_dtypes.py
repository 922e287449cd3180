"""What the array API has beside tensors: dtypes, what is known of them, constants, devices."""

import math

import numpy as np
import pytest

import graphgrad as gg

NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64"
DTYPES = [*NAMES.split(), "complex128"]
KINDS = ("bool", "signed integer", "unsigned integer", "integral", "real floating")
KINDS += ("complex floating", "numeric")


@pytest.mark.parametrize("name", DTYPES)
def test_a_dtype_is_that_of_its_tensors(name):
    dtype = getattr(gg, name)
    assert gg.zeros(2, dtype=dtype).dtype is dtype
    assert gg.constant(1, dtype=dtype) is not None
    assert [gg.isdtype(dtype, k) for k in KINDS] == [np.isdtype(np.dtype(name), k) for k in KINDS]
    assert gg.isdtype(dtype, ("bool", dtype))
    assert not gg.isdtype(dtype, ())


@pytest.mark.parametrize("a", DTYPES)
def test_casts_and_promotion_are_numpys(a):
    for b in DTYPES:
        assert gg.can_cast(gg.zeros(2, dtype=a), b) == np.can_cast(a, b)
        assert gg.result_type(gg.zeros(2, dtype=a), b, 1) == np.result_type(np.dtype(a), b, 1)
        x, y = gg.ones(2, dtype=a), gg.ones(2, dtype=b)
        if "float16" not in (a, b):
            assert gg.add(x, y).dtype == np.add(np.ones(2, a), np.ones(2, b)).dtype


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "complex64", "complex128"])
def test_what_is_known_of_floats(name):
    found, wanted = gg.finfo(getattr(gg, name)), np.finfo(name)
    for field in ("bits", "eps", "max", "min", "smallest_normal", "dtype"):
        assert getattr(found, field) == getattr(wanted, field)
    assert all(type(v) in (int, float) for v in found[:-1])
    assert gg.finfo(gg.zeros(1, dtype=name)) == found


@pytest.mark.parametrize("name", ["int8", "int64", "uint8", "uint64"])
def test_what_is_known_of_integers(name):
    found, wanted = gg.iinfo(name), np.iinfo(name)
    assert found == (wanted.bits, wanted.max, wanted.min, np.dtype(name))


def test_constants():
    assert (gg.e, gg.pi, gg.inf, gg.newaxis) == (math.e, math.pi, math.inf, None)
    assert math.isnan(gg.nan)


def test_small_numbers_are_summed_as_numpy_sums_them_or_as_asked():
    for dtype in DTYPES:
        x = np.array([100, 100, 100]).astype(dtype)
        for name in ("sum", "prod", "cumulative_sum"):
            if dtype == "float16" and name == "prod":
                continue
            found = gg.evaluate(getattr(gg, name)(x))
            wanted = getattr(np, name)(x)
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)
    found = gg.evaluate(gg.sum(np.array([100, 100], "int8"), dtype="int8"))
    assert found == np.array([100, 100], "int8").sum(dtype="int8")
    assert gg.sum([1, 2], dtype="float32").dtype == gg.float32
    assert gg.evaluate(np.sum(gg.constant([1, 2]), dtype="float32")).dtype == "float32"


def test_there_is_one_device_the_host():
    x = gg.placeholder((2,))
    assert x.device == "cpu"
    assert x.to_device("cpu") is x
    assert gg.ones(2, device="cpu").shape == (2,)
    for fn in (lambda: gg.ones(2, device="gpu"), lambda: x.to_device("cuda:0")):
        with pytest.raises(gg.DeviceError, match="compiled: "):
            fn()
    with pytest.raises(gg.DeviceError, match="stream"):
        x.to_device("cpu", stream=1)


def test_arrays_come_and_constants_go_by_dlpack():
    a = np.arange(3.0)
    x = gg.from_dlpack(a)
    a[0] = 9
    np.testing.assert_array_equal(gg.evaluate(x), [0, 1, 2])
    out = np.from_dlpack(gg.constant([1.0, 2.0]))
    np.testing.assert_array_equal(out, [1, 2])
    assert not np.from_dlpack(gg.constant([1.0, 2.0]), copy=False).flags.writeable
    assert x.__dlpack_device__() == (1, 0)
    assert gg.from_dlpack(x) is x
    with pytest.raises(gg.SymbolicError, match="has no value yet"):
        np.from_dlpack(gg.placeholder((2,)))
    for fn in (lambda: gg.from_dlpack([1.0]), lambda: gg.from_dlpack(a, copy=False)):
        with pytest.raises(gg.DTypeError):
            fn()


def test_the_namespace_says_what_it_can_do():
    info = gg.constant(1).__array_namespace__().__array_namespace_info__()
    assert info.capabilities()["data-dependent shapes"] is True
    assert info.devices() == [info.default_device()] == ["cpu"]
    assert info.default_dtypes()["real floating"] is gg.float64
    assert set(info.dtypes(kind="complex floating")) == {"complex64", "complex128"}
    assert info.dtypes(kind=("bool", "unsigned integer"))["bool"] is gg.bool


def test_what_is_none_of_these_is_said():
    for fn, words in [
        (lambda: gg.isdtype("float32", "floating"), "not a kind"),
        (lambda: gg.result_type(), "at least one"),
        (lambda: gg.finfo("int32"), "gg.iinfo"),
        (lambda: gg.iinfo("float32"), "gg.finfo"),
        (lambda: gg.can_cast("float32", "text"), "no.* dtype|not"),
        (lambda: gg.astype(gg.zeros(1, dtype="complex64"), "float32"), "imaginary"),
    ]:
        with pytest.raises(gg.DTypeError, match=words):
            fn()
    with pytest.raises(gg.ShapeError, match="broadcast"):
        gg.broadcast_shapes((2,), (3,))
    assert gg.broadcast_shapes() == ()
