"""Backends by name: those of graphgrad, and those of installed packages."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import Any
from warnings import warn

from ..base.errors import MissingBackendError, UnknownBackendError, did_you_mean
from ..base.lazy import lazy_module
from .backend import Backend, as_backend

__all__ = ["backends", "load_backend"]

GROUP = "graphgrad.backends"
CHOICE = "GRAPHGRAD_BACKEND"
_metadata = lazy_module("importlib.metadata")


def _own(name: str) -> Any:
    module = import_module(f".{name}.backend", __package__)
    return getattr(module, f"{name.capitalize()}Backend")


BUILT_IN: dict[str, Callable[[], Any]] = {n: partial(_own, n) for n in ("numpy", "llvm", "jax")}
EXTRAS = {"llvm": "fast", "jax": "jax"}


def load_backend(name: str | Backend = "auto", **options: Any) -> Backend:
    """The backend of that name, made with these options, or the one that is given.

    "auto" is what the environment variable GRAPHGRAD_BACKEND names, else "llvm" where llvmlite is
    installed (the extra "fast"), else "numpy". Third parties add names by the entry point group
    "graphgrad.backends".
    UnknownBackendError names the nearest; MissingBackendError says which extra to install.
    TypeError for options that the backend does not take, for options beside a Backend, and for what
    is none.
    """
    if not isinstance(name, str):
        backend = as_backend(name)
        if options:
            raise TypeError(
                f"{', '.join(options)}: a backend object already has its options; pass its name "
                f"({backend.name!r}), or create it with them"
            )
        return backend
    wanted = automatic() if name == "auto" else name
    load = BUILT_IN.get(wanted) or _third_party(wanted)
    try:
        make = load()
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "graphgrad":
            raise
        raise MissingBackendError(
            f"the backend {wanted!r} needs the package {error.name!r}: pip install "
            f"'graphgrad[{EXTRAS[wanted]}]'"
            if wanted in EXTRAS
            else f"the backend {wanted!r} needs the package {error.name!r}"
        ) from error
    taken = signature(make).parameters
    unknown = [o for o in options if o not in taken]
    if unknown and all(p.kind is not p.VAR_KEYWORD for p in taken.values()):
        known = ", ".join(taken) or "none"
        raise TypeError(
            f"the backend {wanted!r} takes no {', '.join(unknown)}. Its options are: {known}"
        )
    return as_backend(make(**options))


def automatic() -> str:
    """The name that "auto" stands for."""
    return os.environ.get(CHOICE) or _best_installed()


@cache
def _best_installed() -> str:
    """llvm where llvmlite is there; with a warning, numpy where it is there and does not load."""
    if find_spec("llvmlite") is None:
        return "numpy"
    try:
        _own("llvm")
    except Exception as error:  # of another package, which may be broken in any way
        warn(
            f"llvmlite is installed but cannot be loaded, so programs run on NumPy: {error}\n"
            f"Reinstall it, or set {CHOICE}=numpy",
            RuntimeWarning,
            stacklevel=7,  # of compile()
        )
        return "numpy"
    return "llvm"


def backends() -> list[str]:
    """The names of every backend, installed packages or not."""
    return sorted({*BUILT_IN, *(e.name for e in _metadata.entry_points(group=GROUP))})


def _third_party(name: str) -> Callable[[], Any]:
    for entry in _metadata.entry_points(group=GROUP):
        if entry.name == name:
            load: Callable[[], Any] = entry.load
            return load
    known = ["auto", *backends()]
    hint = did_you_mean(name, known, f"There are {', '.join(known)}.")
    raise UnknownBackendError(f"no backend is called {name!r}. {hint}")
