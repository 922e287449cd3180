"""What all tests share: "auto" is NumPy, whose results many of them expect to the last bit.

Set GRAPHGRAD_BACKEND to run them on another backend; the laws run on every backend anyway. Tests
that need a package which is not installed are left out, but for those named in GRAPHGRAD_NEEDS.
"""

import gc
import os
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import compiled
from graphgrad.ir.context import CONTEXT, Context
from graphgrad.ir.op import OP_TYPES

os.environ.setdefault("GRAPHGRAD_BACKEND", "numpy")
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # of a library, for tests that run side by side

os.environ.pop("COLUMNS", None)  # which workers that run side by side are given: text fits it

sys.dont_write_bytecode = False  # or every process that a test starts compiles all modules anew
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

for package in os.environ.get("GRAPHGRAD_NEEDS", "").split():
    import_module(package)


BACKENDS = ("numpy", "llvm", "jax")


def pytest_collection_modifyitems(config, items):
    """What runs on JAX is left out where that is not installed, bfloat16 where ml_dtypes is not;
    and where another backend is asked for, what names the one that it runs on."""
    if os.environ["GRAPHGRAD_BACKEND"] != "numpy":
        named = [item for item in items if _backend_of(item)]
        items[:] = [item for item in items if not _backend_of(item)]
        config.hook.pytest_deselected(items=named)
    if find_spec("jax") is None:
        for item in items:
            if _backend_of(item) == "jax":
                item.add_marker(pytest.mark.skip(reason="jax is not installed"))
    if find_spec("ml_dtypes") is None:
        for item in items:
            if "bfloat16" in _strings(item):
                item.add_marker(pytest.mark.skip(reason="ml_dtypes is not installed"))


def _backend_of(item):
    """The backend among the parameters of a test."""
    return next((v for v in _strings(item) if v in BACKENDS), None)


def _strings(item):
    """The words among the parameters of a test."""
    given = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return [v for v in given if isinstance(v, str)]


def pytest_collection_finish():
    """What was collected stays to the end: the garbage collector need not look at it again.

    Nor as often as it would at what tests leave in caches, which was a tenth of their time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


@pytest.fixture(autouse=True, scope="session")
def _verified():
    """Every program that a test compiles is verified after every pass."""
    passes = compiled._passes
    compiled._passes = lambda optimize, verify, fast_math: passes(optimize, True, fast_math)
    yield
    compiled._passes = passes


@pytest.fixture(autouse=True)
def _alone(request):
    """A test finds what it would find alone, whichever came before it in its process.

    Its default graph is its own, what it draws from a generator of its module are the first
    numbers that come after those of the import, and op types that it defines inside are gone.
    """
    for generator, state in _generators(request.module):
        generator.bit_generator.state = state
    before = set(OP_TYPES)
    token = CONTEXT.set(Context(gg.Graph(), implicit=True))
    yield
    CONTEXT.reset(token)
    for name in set(OP_TYPES) - before:
        made = OP_TYPES[name]
        if made.__module__ == request.module.__name__ or "<locals>" in made.__qualname__:
            del OP_TYPES[name]


@cache
def _generators(module):
    """Each generator among the names of a module, and its state before the first test."""
    found = [v for v in vars(module).values() if isinstance(v, np.random.Generator)]
    return [(generator, generator.bit_generator.state) for generator in found]


@pytest.fixture
def own_names():
    """Rules and op types that a test registers are gone after it."""
    before = set(gg.registered_gradients())
    types_before = set(OP_TYPES)
    yield
    for name in set(gg.registered_gradients()) - before:
        gg.unregister_gradient(name)
    for name in set(OP_TYPES) - types_before:
        del OP_TYPES[name]


@pytest.fixture
def own_gradients():
    """What a test registers with TensorFlow's names is gone after it; what tf1 derives stays."""
    definitions = import_module("graphgrad.tf1.definition").DEFINITIONS
    registry = import_module("graphgrad.tf1.registry").gradient_registry._registry
    import_module("graphgrad.tf1")
    before = set(registry)
    yield
    for name in set(registry) - before - set(definitions):
        del registry[name]
