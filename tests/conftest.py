"""What all tests share: "auto" is NumPy, whose results many of them expect to the last bit.

Set GRAPHGRAD_BACKEND to run them on another backend; the laws run on every backend anyway. Tests
that need a package which is not installed are left out, but for those named in GRAPHGRAD_NEEDS.
"""

import os
from importlib import import_module

import pytest

os.environ.setdefault("GRAPHGRAD_BACKEND", "numpy")

for package in os.environ.get("GRAPHGRAD_NEEDS", "").split():
    import_module(package)

_compile = import_module("graphgrad.compile")


@pytest.fixture(autouse=True, scope="session")
def _verified():
    """Every program that a test compiles is verified after every pass."""
    passes = _compile._passes
    _compile._passes = lambda optimize, verify, fast_math: passes(optimize, True, fast_math)
    yield
    _compile._passes = passes
