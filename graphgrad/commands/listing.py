"""`ops`, `rules`, `doctor`: what there is, and what this machine has."""

from __future__ import annotations

import os
import platform
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import numpy as np

from ..base.errors import MissingBackendError, did_you_mean
from ..base.words import visible
from ..execute.loading import backends, load_backend
from ..inspect.layout.terminal import fitted, width_of
from ..ir.op import op_types
from ..regions.rules import registered_gradients
from ..rules.entries import library

PACKAGES = {
    "numpy": "core",
    "networkx": "core",
    "llvmlite": "fast",
    "jax": "jax",
    "scipy": "scipy",
    "onnx": "onnx",
    "pygraphviz": "viz",
    "tensorboardX": "tensorboard",
    "sklearn": "demo",
    "matplotlib": "demo",
    "jinja2": "demo",
    "rich": "demo",
}


def pattern_arguments(parser: ArgumentParser) -> None:
    """An optional part of the name."""
    parser.add_argument("part", nargs="?", default="", help="only names that contain this")


def no_arguments(parser: ArgumentParser) -> None:
    """None."""


def ops(options: Namespace) -> int:
    """One line for each op type: its name, its attributes, the first line of its docstring."""
    part = options.part.lower()
    classes = {n: c for n, c in sorted(op_types().items()) if part in n.lower()}
    rows = [f"{n}({', '.join(c.fields)})  {_first(c.__doc__)}" for n, c in classes.items()]
    return _listed("op type", options.part, rows, op_types())


def rules(options: Namespace) -> int:
    """One line for each rule."""
    part = options.part.lower()
    rows = [f"gg.rules.{entry.name}  {entry.summary}" for entry in library().values()]
    rows += [visible(f"registered: {name}") for name in sorted(registered_gradients())]
    matches = [row for row in rows if part in row.split("  ")[0].lower()]
    return _listed("rule", options.part, matches, [*library(), *registered_gradients()])


def _listed(what: str, part: str, rows: list[str], names: Iterable[str]) -> int:
    """Print the rows; where there are none, say so, and what was perhaps meant."""
    width = width_of(sys.stdout)
    for row in rows:
        print("\n".join(fitted(row, width)))
    if rows:
        return 0
    print(f"no {what} has {part!r} in its name. {did_you_mean(part, names)}".rstrip())
    return 1


def _first(doc: str | None) -> str:
    return (doc or "").strip().partition("\n")[0]


def doctor(options: Namespace) -> int:
    """The facts, one a line; exit code 1 where what is needed is missing."""
    print(f"python {platform.python_version()} on {platform.machine()}, {platform.system()}")
    missing = 0
    for package, extra in PACKAGES.items():
        release = _version(package)
        if release:
            print(f"{package} {release}")
        elif extra == "core":
            missing += 1
            print(f"{package} is missing, and needed: pip install {package}")
        else:
            print(f"{package} is not installed (pip install 'graphgrad[{extra}]')")
    for name in backends():
        try:
            load_backend(name)
        except MissingBackendError as error:
            print(f"backend {name}: {error}")
        else:
            print(f"backend {name}: can be used")
    chosen = load_backend("auto")
    print(f"backend auto: {chosen.name}")
    print(f"threads: {_threads()}")
    print(f"BLAS: {_blas()}")
    return 1 if missing else 0


def _version(package: str) -> str | None:
    distribution = {"sklearn": "scikit-learn"}.get(package, package)
    try:
        return version(distribution) if find_spec(package) else None
    except PackageNotFoundError:
        return None


def _threads() -> str:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    free = "" if getattr(sys, "_is_gil_enabled", lambda: True)() else ", free-threaded Python"
    return f"{usable} processors may be used{free}"


def _blas() -> str:
    config = np.show_config(mode="dicts") or {}
    blas = config.get("Build Dependencies", {}).get("blas", {})
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()
