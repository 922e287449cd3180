"""docs/trust.md: how exact ops are, what is the same bit for bit, what was tried and is supported.

python tools/trust_doc.py            measure, and print the page
python tools/trust_doc.py --write    write it

It takes a quarter of an hour, and needs the extras fast, jax, scipy and test. `tests/test_trust.py`
measures a sample again.
"""

import argparse
import re
import sys
import tempfile
import tomllib
from collections import Counter
from importlib.metadata import version
from itertools import islice
from os import environ
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    environ.setdefault(threads, "1")

import numpy as np  # noqa: E402

import graphgrad as gg  # noqa: E402
from graphgrad.ir.op import OP_TYPES  # noqa: E402
from graphgrad.laws.trying import compiled, placed  # noqa: E402
from tests.fuzz.agree import check  # noqa: E402
from tests.laws.test_exact_gradients import (  # noqa: E402
    FUNCTIONS,
    OF_SCIPY,
    SLOPES,
    computed,
    exact,
    units,
)

DOCUMENT = ROOT / "docs" / "trust.md"
BACKENDS = ("numpy", "llvm", "jax")
DTYPES = ("float64", "float32")
SEEDS = 100
FIRST = 3
SHOWN = 40
LAYERS = 24

HEAD = """---
myst:
  html_meta:
    keywords: accuracy, ulp, precision, error, reproducible, deterministic, support, versions
---
# Accuracy, reproducibility, support

This page lists how accurate each op is, what gives the same bits again, and which versions are
supported. `python tools/trust_doc.py --write` runs all measurements and writes the page; a test
repeats a sample of them. These numbers are from {versions}.

## Errors of element-wise ops

Each cell has the largest error of the value / of the first derivatives / of the second
derivatives, in units in the last place. mpmath computes the exact result with 1,400 bits. A
correctly rounded result has an error of at most 0.5. The points are chosen to be hard: tiny and
huge numbers, tails, and points close to singularities and zeros. Functions from SciPy are measured
only in float64, and not on JAX. Derivatives are graphgrad's own on every backend; on JAX, XLA
computes the values.

"""

SAME = """
## What is reproducible bit for bit

- **Two runs** of a compiled function on the same arrays, in one environment: {again},
  tested on samples.
- **Resumed training** gives the same bits as uninterrupted training, including random draws
  without a seed ([checkpoints](files.md#checkpoints)).
- **Rewrites** at the default level: those labelled *exact* change no bits; those labelled
  *rounding* change last bits ([the list](optimisation.md)). `fast_math=True` may change more.
- **Convolutions** of 3 x 3 in float32 use Winograd's algorithm with LLVM, with a larger error
  ([conditions](optimisation.md#convolutions)); `exact=True` turns it off.
- **Random bits** are the same on every backend for a given seed (Philox).
- **Different backends** compute some ops with different functions. This table compares them on
  samples of all ops that both support:

| compared with NumPy | ops | same bits | ops that differ |
|---|---|---|---|
"""

TRIED = """
## Tests with random programs

Random programs, each compared with the results of the ops' own kernels, for seeds 0 to {last}:

{fuzz}

`python tools/fuzz.py SEED` repeats one of them. `python tools/mutate.py` changes the core line by
line and reports the changes that no test detects. [The survival matrix](survival.md) tests every
kind of override with every transform. Bugs fixed in each release ([changelog](_made/changelog)):

| release | fixed |
|---|---|
{fixed}

## Supported versions

graphgrad follows [SPEC 0](https://scientific-python.org/specs/spec-0000/): it supports releases of
NumPy and networkx from the last two years, and Python versions from the last three. The tests run
with the oldest supported versions and with the newest.

| | minimum version |
|---|---|
{lowest}

## What an override costs

Nothing at run time: {layers} dense layers with `gg.rules.scale(1.0)` on each activation
compile to {marked} steps, and to {plain} without it. Building and differentiating take a few
microseconds more per region ([performance](performance.md)).
"""


def main():
    """Print or write it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}")
    given = parser.parse_args()
    text = document()
    if given.write:
        DOCUMENT.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    return 0


def document():
    """The whole page."""
    same, again = repeated()
    return (
        HEAD.format(versions=versions())
        + errors()
        + SAME.format(again=again)
        + same
        + TRIED.format(
            last=SEEDS - 1,
            fuzz=fuzzed(),
            fixed=mended(),
            lowest=supported(),
            layers=LAYERS,
            marked=steps(True),
            plain=steps(False),
        )
    )


def versions():
    """What it was measured with."""
    python = ".".join(map(str, sys.version_info[:2]))
    names = {"NumPy": "numpy", "llvmlite": "llvmlite", "JAX": "jax", "SciPy": "scipy"}
    others = ", ".join(f"{name} {version(package)}" for name, package in names.items())
    return f"graphgrad {gg.__version__}, Python {python}, {others}"


# --- errors -----------------------------------------------------------------------------------


def errors():
    """The table: a row an op, a column a backend and dtype."""
    columns = [(b, d) for b in BACKENDS for d in DTYPES]
    head = [f"{b} {d}" for b, d in columns]
    lines = [f"| op | {' | '.join(head)} |", "|---" * (len(columns) + 1) + "|"]
    for name in sorted(FUNCTIONS):
        cells = [cell(name, dtype, backend) for backend, dtype in columns]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def cell(name, dtype, backend):
    """`0.5 / 1.3 / 2.1`: of the value, the first derivatives, the second."""
    if name in OF_SCIPY and (dtype != "float64" or backend == "jax"):
        return ""
    return " / ".join(f"{worst:.1f}" for worst in worsts(name, dtype, backend))


def worsts(name, dtype, backend):
    """The largest error of the value, of the first derivatives and of the second ones."""
    wanted, points = exact(name, dtype)
    found = computed(name, dtype, points, backend)
    off = [units(got, want, dtype) for got, want in zip(found, wanted, strict=True)]
    worst = [np.nanmax(o, initial=0.0) for o in off]
    inputs = len(points[0])
    groups = [worst[:1], worst[1 : 1 + inputs], worst[1 + inputs :]]
    return [float(max(group)) for group in (groups[:2] if name in SLOPES else groups)]


# --- bits -------------------------------------------------------------------------------------


def repeated():
    """The rows of backends that are compared with NumPy, and what two runs give."""
    rows = []
    runs = wrong = 0
    for backend in BACKENDS[1:]:
        found = Counter()
        others = []
        for name, cls in sorted(OP_TYPES.items()):
            same = agrees(cls, backend)
            if same is None:
                continue
            found[same] += 1
            others += [f"`{name}`"] * (not same)
        shown = ", ".join(others[:40]) + (
            f" and {len(others) - 40} more" if len(others) > 40 else ""
        )
        rows.append(f"| {backend} | {sum(found.values())} | {found[True]} | {shown} |")
    for cls in OP_TYPES.values():
        again = twice(cls)
        runs += again is not None
        wrong += again is False
    said = f"all of {runs} ops" if not wrong else f"all but {wrong} of {runs} ops"
    return "\n".join(rows) + "\n", said


def samples(cls):
    """What an op is tried on: the first of its samples."""
    try:
        return list(islice(cls.samples(np.random.default_rng(0)), FIRST))
    except NotImplementedError:
        return []


def agrees(cls, backend):
    """Whether a backend gives NumPy's bits for the samples of an op; None where it is not run."""
    tried = []
    for op, arrays in samples(cls):
        if not op.pure:
            return None
        try:
            here, there = (
                compiled(placed(op, arrays), backend=b)(*arrays) for b in ("numpy", backend)
            )
        except Exception:  # what a backend refuses is told in docs/ops.md
            return None
        tried.append(all(map(equal, here, there)))
    return all(tried) if tried else None


def twice(cls):
    """Whether two runs on the default backend give the same; None where it is not run."""
    tried = []
    for op, arrays in samples(cls):
        if not op.pure:
            return None
        try:
            f = compiled(placed(op, arrays))
            tried.append(all(map(equal, f(*arrays), f(*arrays))))
        except gg.GraphGradError:
            return None
    return all(tried) if tried else None


def equal(a, b):
    """The same bits, any NaN being as good as another."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind == "c":
        return equal(a.real, b.real) and equal(a.imag, b.imag)
    if a.dtype.kind != "f":
        return np.array_equal(a, b)
    signs = np.isnan(a) | (np.signbit(a) == np.signbit(b))
    return np.array_equal(a, b, equal_nan=True) and bool(signs.all())


# --- what was tried ---------------------------------------------------------------------------


def fuzzed():
    """How many random programs failed, by backend."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        environ.setdefault("GRAPHGRAD_CACHE", folder)
        for backend in ("numpy", "llvm"):
            failed = [seed for seed in range(SEEDS) if fails(seed, backend)]
            said = f"none of {SEEDS} differs" if not failed else f"{len(failed)} differ: {failed}"
            lines.append(f"- {backend}: {said}")
    return "\n".join(lines)


def fails(seed, backend):
    """Whether the program of a seed gives something else there."""
    try:
        check(seed, backend)
    except AssertionError:
        return True
    return False


def mended():
    """How many entries the changelog has of each release under "Fixed"."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    rows = []
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title = part.partition("\n")[0].strip("[] ").replace("]", "")
        fixed = re.search(r"^### Fixed\n(.*?)(?=^### |\Z)", part, re.MULTILINE | re.DOTALL)
        if fixed:
            rows.append(f"| {title} | {len(re.findall('^- ', fixed[1], re.MULTILINE))} |")
    return "\n".join(rows)


def supported():
    """The lowest versions, as pyproject.toml has them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = [("Python", project["requires-python"].removeprefix(">="))]
    extras = ("fast", "scipy", "jax", "torch", "onnx")
    needed = [*project["dependencies"], *(project["optional-dependencies"][e][0] for e in extras)]
    rows += [tuple(one.split(">=")) for one in needed]
    return "\n".join(f"| {name} | {bound} |" for name, bound in rows)


def steps(marked):
    """How many steps the gradients of a network compile to, with a rule on each activation."""
    with gg.Graph():
        x = gg.placeholder((8, 16), name="x")
        ws = [gg.variable(np.eye(16), name=f"w{i}") for i in range(LAYERS)]
        h = x
        for w in ws:
            h = h @ w
            if marked:
                with gg.override_gradient(gg.rules.scale(1.0)):
                    h = gg.tanh(h)
            else:
                h = gg.tanh(h)
        f = gg.compile(x, gg.gradients(gg.sum(h), ws), backend="numpy")
    return len(f.program.nodes)


if __name__ == "__main__":
    sys.exit(main())
