"""Functions of vectors: near NumPy's over the whole range, on every kind of machine."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from graphgrad.execute.llvm.emit import jit
from graphgrad.execute.llvm.emit.module import Body, Module
from graphgrad.execute.llvm.emit.text import function
from graphgrad.execute.llvm.emit.types import vector
from graphgrad.execute.llvm.emit.values import Value, call, call_pair
from graphgrad.execute.llvm.functions.power import power
from graphgrad.execute.llvm.loops.expressions import HELPERS, PAIRS

from ...each import every

ELEMENTS = {"float": np.float32, "double": np.float64}
SPECIAL = [
    *(0.0, 1.0, 0.5, 2.0, np.inf, np.nan, 1e-45, 1e-40, 2.0**-126, 3.4028235e38, 5e-324),
    *(2.0**-1022, 1.7976931348623157e308, np.pi / 2, np.pi, 88.7, 89.4, 709.7, 710.4, 1e5, 1e22),
]
ULPS = 4
FIXING_SMALL = ["arcsin", "arcsinh", "arctan", "arctanh", "expm1", "log1p", "sin", "sinh", "tan"]


@pytest.fixture(autouse=True)
def _fma():
    if not jit.host().fma:
        pytest.skip("this machine has no FMA")


def compiled(formula, element, arity=1, target=None, lanes=None):
    """A function of arrays that applies a formula vector by vector."""
    target = target or jit.host()
    lanes = lanes or target.lanes(element)
    module = Module(target)
    t = Body(module)
    kind = vector(element, lanes)
    size = np.dtype(ELEMENTS[element]).itemsize

    def one(i):
        at = t.mul(i, size)
        args = [
            Value(t, element, lanes, t(f"load {kind}, ptr {t.at(f'%x{k}', at)}, align {size}"))
            for k in range(arity)
        ]
        made = call(formula, args)
        t.do(f"store {kind} {made.name}, ptr {t.at('%y', at)}, align {size}")

    t.loop(0, "%n", lanes, one)
    takes = ", ".join(["i64 %n", "ptr %y", *(f"ptr %x{k}" for k in range(arity))])
    module.add("k", function("void", "k", takes, t, internal=False))
    text = "declare i64 @llvm.smin.i64(i64, i64)\n" + module.text
    loaded = jit.Loaded(jit.object_code(text, target), ["k"])
    pointers = [ctypes.c_void_p] * (1 + arity)
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64, *pointers)(loaded.address("k"))

    def apply(*arrays):
        n = arrays[0].size
        padded = [np.concatenate([a, np.ones(-n % lanes, a.dtype)]) for a in arrays]
        y = np.empty_like(padded[0])
        run(y.size, y.ctypes.data, *[a.ctypes.data for a in padded])
        return y[:n]

    apply.loaded = loaded
    return apply


def numbers(dtype):
    """Every kind of number: bit patterns over the whole range, the usual ones, and the edges."""
    rng = np.random.default_rng(0)
    if dtype is np.float32:
        spread = np.arange(0, 1 << 32, 8009, dtype=np.uint64).astype(np.uint32).view(dtype)
    else:
        spread = rng.integers(0, 1 << 64, 200_000, dtype=np.uint64).view(dtype)
    parts = [rng.uniform(-a, a, 50_000) for a in (1e-3, 1.0, 10.0, 800.0)]
    edges = np.array([s * v for v in SPECIAL for s in (1, -1)])
    with np.errstate(over="ignore"):
        rest = np.concatenate([*parts, rng.normal(1, 1e-3, 50_000), edges]).astype(dtype)
    return np.concatenate([spread, rest])


def ulps(found, wanted):
    """How many numbers lie between, at most."""
    bits = np.int32 if found.dtype == np.float32 else np.int64
    a, b = (np.ascontiguousarray(v).view(bits).astype(np.int64) for v in (found, wanted))
    least = np.int64(np.iinfo(bits).min)
    a, b = (np.where(v < 0, least - v, v) for v in (a, b))
    same = (np.isnan(found) & np.isnan(wanted)) | (found == wanted)
    with np.errstate(over="ignore"):
        apart = np.abs(a - b)
    return int(np.max(np.where(same, 0, apart)))


def reference(name, x):
    """NumPy's function; the C library's where it has none (SciPy's erfc is off far out)."""
    if name == "tanh_slope":
        e = np.exp(-2 * np.abs(x.astype(np.longdouble)))
        return (4 * e / (1 + e) ** 2).astype(x.dtype)
    if name in ("erf", "erfc"):
        fn = getattr(math, name)
        return np.array([fn(v) for v in x.tolist()]).astype(x.dtype)
    return getattr(np, name)(x)


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("name", FIXING_SMALL)
def test_subnormal_numbers_keep_their_bits(name, element):
    info = np.finfo(ELEMENTS[element])
    steps = np.array([1, 2, 3, 5, 7, 11, 2**20 + 1])
    x = np.concatenate([steps * info.smallest_subnormal, np.array([0.7, 1, 1.3, 3.9]) * info.tiny])
    x = np.concatenate([x, -x]).astype(ELEMENTS[element])
    np.testing.assert_array_equal(compiled(HELPERS[name], element)(x), x)


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("name", every(2, HELPERS))
def test_within_units_in_the_last_place(name, element):
    x = numbers(ELEMENTS[element])
    with np.errstate(all="ignore"):
        wanted = reference(name, x)
    found = compiled(HELPERS[name], element)(x)
    assert ulps(found, wanted) <= (5 if name == "erfc" else ULPS)  # SciPy's is off by hundreds
    zero = (found == 0) & (wanted == 0)
    assert (np.signbit(found) == np.signbit(wanted))[zero].all()


@pytest.mark.parametrize("name", PAIRS)
def test_what_is_computed_with_another_is_the_same(name):
    pair, place = PAIRS[name]

    def of_pair(x):
        return call_pair(pair, x, inline=False)[place]

    x = numbers(np.float32)[::50]
    assert ulps(compiled(of_pair, "float")(x), compiled(HELPERS[name], "float")(x)) == 0


def test_a_pair_is_computed_once_in_a_block_and_again_in_the_next():
    t = Body(Module(jit.host()))
    x = Value(t, "float", 4, "%x")
    for blocks in (1, 2):
        for _ in range(2):
            call_pair(PAIRS["tanh"][0], x)
            call_pair(PAIRS["tanh_slope"][0], x)
        assert sum("@tanh_and_slope" in line for line in t.lines) == blocks
        t.label("next")


@pytest.mark.parametrize("name", ["exp", "tanh", "tanh_slope", "log1p", "sin", "erfc"])
def test_every_machine_computes_the_same(name):
    """Without AVX-512, without AVX, in scalars, in vectors of two: bit by bit."""
    if not jit.llvm.get_process_triple().startswith("x86_64"):
        pytest.skip("targets of x86")
    x = numbers(np.float32)[::200]
    wanted = compiled(HELPERS[name], "float")(x)
    avx2 = jit.target_of("x86-64-v3", "+avx,+avx2,+fma")
    sse = jit.target_of("x86-64-v2", "+sse4.2")
    assert (avx2.width, sse.width, avx2.scalef, sse.fma) == (32, 16, False, False)
    for target, lanes in ((avx2, 8), (avx2, 32), (sse, 4), (None, 1), (None, 2), (None, 64)):
        found = compiled(HELPERS[name], "float", target=target, lanes=lanes)(x)
        assert ulps(found, wanted) == 0, (target, lanes)


def test_powers():
    edges = np.array([s * v for v in (*SPECIAL, 1.5, 3.0, 7.0, 8.0, 2.0**24) for s in (1, -1)])
    with np.errstate(over="ignore"):
        x, y = (a.ravel().astype(np.float32) for a in np.meshgrid(edges, edges))
    rng = np.random.default_rng(0)
    x = np.concatenate([x, rng.uniform(0, 100, 100_000), rng.uniform(-9, 9, 100_000)])
    y = np.concatenate([y, rng.uniform(-20, 20, 100_000), rng.integers(-9, 9, 100_000)])
    x, y = x.astype(np.float32), y.astype(np.float32)
    found = compiled(power, "float", 2)(x, y)
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
    assert ulps(found, wanted) <= ULPS


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_large_arguments_leave_their_neighbours_alone(name):
    """The C library's function is taken for them, and for nothing else."""
    x = np.linspace(-10, 10, 64).astype(np.float32)
    run = compiled(HELPERS[name], "float")
    alone = run(x)
    mixed = x.copy()
    mixed[::5] = [1e8, -1e20, np.inf, np.nan, 3e38] * 2 + [1e7] * 3
    found = run(mixed)
    kept = np.arange(64) % 5 != 0
    np.testing.assert_array_equal(found[kept], alone[kept])
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(mixed[~kept].astype(np.float64)).astype(np.float32)
    assert ulps(found[~kept], wanted) <= ULPS
