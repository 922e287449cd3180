"""Backends are found by name; kernels are written once and overridden where that is better."""

import numpy as np
import pytest

from graphgrad.base.errors import ExecutionError, MissingBackendError, UnknownBackendError
from graphgrad.compiled import compile
from graphgrad.execute import loading as module
from graphgrad.execute.kernels import Kernels, one_call_per_node
from graphgrad.execute.loading import (
    backends,
    load_backend,
)
from graphgrad.execute.numpy.backend import NumpyBackend
from graphgrad.ir.graph import Graph
from graphgrad.ir.op import Op
from graphgrad.ir.program import Program
from graphgrad.ops.base import apply
from graphgrad.ops.elementwise.exponential import Exp, exp
from graphgrad.ops.sources import Identity, identity, placeholder, stop_gradient


def test_names():
    assert isinstance(load_backend(), NumpyBackend)
    assert isinstance(load_backend("numpy"), NumpyBackend)
    assert {"numpy", "llvm", "jax"} <= set(backends())
    mine = NumpyBackend()
    assert load_backend(mine) is mine


@pytest.mark.parametrize("name", ["numpy", "llvm"])
def test_the_environment_says_whether_programs_are_checked(name, monkeypatch):
    if name == "llvm":
        pytest.importorskip("llvmlite")
    for word, wanted in (("1", True), ("0", False), ("", False), (None, False)):
        if word is None:
            monkeypatch.delenv("GRAPHGRAD_CHECK", raising=False)
        else:
            monkeypatch.setenv("GRAPHGRAD_CHECK", word)
        assert load_backend(name).check is wanted
        assert load_backend(name, check=True).check is True
        assert load_backend(name, check=False).check is False
    monkeypatch.setenv("GRAPHGRAD_CHECK", "yes")
    with pytest.raises(ValueError, match="GRAPHGRAD_CHECK is 1 or 0, got 'yes'"):
        load_backend(name)


def test_a_checked_environment_finds_what_a_kernel_hides(monkeypatch):
    with Graph():
        x = placeholder((3,))
        y = apply(Hides(), x)
        monkeypatch.setenv("GRAPHGRAD_CHECK", "1")
        with pytest.raises(ExecutionError, match=r"Hides.* without saying so"):
            compile(x, y, backend="numpy")(np.ones(3))
        f = compile(x, y, backend="numpy", check=False)
    a = np.ones(3)
    assert not np.shares_memory(f(a), a)


class Hides(Op):
    """y = x, which its kernel returns as it is and does not say so."""

    def infer(self, x):
        return (x,)

    def kernel(self, xp, x):
        return x


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(UnknownBackendError, match="Did you mean 'numpy'"):
        load_backend("nunpy")
    with pytest.raises(LookupError, match="There are auto, jax, llvm, numpy"):
        load_backend("zzz")


class Entry:
    name = "other"

    def __init__(self, loaded):
        self._loaded = loaded

    def load(self):
        return self._loaded()


def _missing():
    raise ModuleNotFoundError("No module named 'jax'", name="jax")


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(module.BUILT_IN, "jax", _missing)
    with pytest.raises(MissingBackendError, match=r"pip install 'graphgrad\[jax\]'"):
        load_backend("jax")


def test_a_third_party_is_found_by_entry_point(monkeypatch):
    monkeypatch.setattr(
        module._metadata, "entry_points", lambda group: [Entry(lambda: NumpyBackend)]
    )
    assert isinstance(load_backend("other"), NumpyBackend)
    assert "other" in backends()


def test_an_override_speaks_for_one_op_type():
    kernels = Kernels(np)

    @kernels.override(Exp)
    def _(op):
        return lambda x: np.exp(x) + 1

    @kernels.override(Identity)
    def _(op):
        return lambda x: x + 100

    with Graph():
        x = placeholder((), name="x")
        p = Program([x], [exp(x), identity(x), stop_gradient(x)])
    values = one_call_per_node(p, kernels)(np.array(0.0))
    assert [float(v) for v in values] == [2.0, 100.0, 0.0]


def test_an_override_may_decline():
    kernels = Kernels(np)
    kernels.override(Exp)(lambda op: None)
    assert kernels.of(Exp())(0.0) == 1.0


def test_one_call_per_node_gives_arrays_of_ones_own():
    with Graph():
        x = placeholder((2,), name="x")
        p = Program([x], [identity(x), identity(x), exp(x)])
    a = np.zeros(2)
    y, z, e = one_call_per_node(p, Kernels(np))(a)
    assert not any(np.shares_memory(u, v) for u, v in [(a, y), (a, z), (y, z)])
    assert (e == 1).all()


@pytest.mark.parametrize("given", [NumpyBackend, 3, Kernels(np)])
def test_what_is_no_backend_is_refused(given):
    with pytest.raises(TypeError, match="a backend is a name, or an object with `compile"):
        load_backend(given)
