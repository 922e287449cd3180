"""Pages that are made of the code: a page of names for each part, examples, the gallery of rules.

They are written into docs/_made/ whenever the site is built; what has not changed is left alone,
so that Sphinx builds it once.
"""

import ast
import importlib
import inspect
import re
from pathlib import Path

import graphgrad as gg

from . import docstrings, gallery, tensorflow

ROOT = Path(__file__).resolve().parents[2]
MADE = ROOT / "docs" / "_made"

PARTS = {
    "Graphs, tensors, variables": (
        *("ir.graph", "ir.node", "ir.op", "ir.program", "ir.variables", "ir.state", "base.length"),
    ),
    "Rules and regions": ("regions",),
    "Derivatives": ("differentiate",),
    "Running": ("compiled", "functions", "session", "execute"),
    "Checks": ("checks",),
    "Attribution": ("attribution",),
    "Stable forms": ("healing",),
    "Pictures and profiles": ("inspect",),
    "Files": ("files", "export"),
    "Errors and warnings": ("base.errors",),
    "Making tensors": (
        *("ops.create.creation", "ops.sources", "ops.arrays.grids"),
        *("ops.signal.window_functions", "ops.dtypes"),
    ),
    "Shapes, indexing, sorting": (
        *("ops.base", "ops.shape", "ops.create.diagonal", "ops.reduce.sorting"),
        *(f"ops.arrays.{name}" for name in ("at", "cases", "nonzero", "rearranging", "searching")),
        *("ops.arrays.sets", "ops.arrays.stacking", "ops.arrays.taking", "ops.protocols.queries"),
    ),
    "Sums, statistics, products": (
        *("ops.reduce.reductions", "ops.reduce.cumulative", "ops.reduce.running_extrema"),
        *("ops.contract", "ops.signal", "ops.arrays.statistics", "ops.arrays.nan"),
        *("ops.arrays.histograms", "ops.arrays.differences"),
    ),
    "Control flow and Python functions": ("ops.control", "ops.python_function"),
    "Element-wise: arithmetic and powers": (
        *("ops.elementwise.arithmetic", "ops.elementwise.powers", "ops.elementwise.remainders"),
        *("ops.elementwise.accumulate", "ops.elementwise.widening"),
    ),
    "Element-wise: exponentials, logarithms, trigonometry": (
        *("ops.elementwise.exponential", "ops.elementwise.trigonometry"),
        *("ops.elementwise.angles", "ops.elementwise.sinc"),
    ),
    "Element-wise: comparisons, logic, bounds": (
        *("ops.elementwise.logic", "ops.elementwise.bounds", "ops.arrays.closeness"),
    ),
    "Element-wise: rounding, signs, parts of numbers": (
        *("ops.elementwise.rounding", "ops.elementwise.magnitudes"),
        *("ops.elementwise.number_parts", "ops.elementwise.complex_parts", "ops.elementwise.grids"),
    ),
    "Other functions": ("",),
}
"""The pages of `graphgrad` itself, and the modules whose names each has: the first that fits."""

MODULES = [name for name in gg.__all__ if inspect.ismodule(getattr(gg, name))]


def write(_app=None):
    """Write every page, and remove those that were written before and are none any more."""
    texts = {f"{name}.rst": text for name, text in {**reference(), **others()}.items()}
    texts |= {
        f"{name.lower()}.md": moved(ROOT / f"{name}.md") for name in ("CONTRIBUTING", "CHANGELOG")
    }
    for path in (*MADE.glob("api/*.rst"), *MADE.glob("gallery/*.rst")):
        if path.relative_to(MADE).as_posix() not in texts:
            path.unlink()
    for name, text in texts.items():
        path = MADE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def reference():
    """{name of a page: text} of the pages that have every public name."""
    pages = {f"api/{slug(title)}": page(title, "graphgrad", names) for title, names in parts()}
    for name in MODULES:
        module = importlib.import_module(f"graphgrad.{name}")
        told = docstrings.prose(inspect.getdoc(module))
        title = f"graphgrad.{name}"
        pages[f"api/{name}"] = page(title, module.__name__, sorted(module.__all__), told)
    pages["api/tf1"] = tensorflow.page()
    pages["api/index"] = index(pages)
    return pages


def others():
    """{name of a page: text} of what is neither reference nor document."""
    return {"examples": examples(), **gallery.write(MADE / "gallery")}


def parts():
    """The title of each part, and its names."""
    found = {title: [] for title in PARTS}
    for name in sorted({*gg.__all__, *dir(gg)}):
        if not inspect.ismodule(getattr(gg, name)):
            found[part_of(getattr(gg, name))].append(name)
    return found.items()


def part_of(o):
    """The title of the page that has it."""
    module = getattr(o, "__module__", None)
    if module is None or not module.startswith("graphgrad"):  # numbers and dtypes
        return "Making tensors" if o is not gg.NO_GRAD else "Rules and regions"
    return next(t for t, starts in PARTS.items() if module.startswith(tuple(map(full, starts))))


def full(start):
    """The name of a module."""
    return f"graphgrad.{start}"


def page(title, module, names, told=()):
    """What is told, a table of names, and below it what each is."""
    lines = [*headed(title, "="), "", *told, f".. currentmodule:: {module}", ""]
    found = {name: getattr(importlib.import_module(module), name) for name in names}
    known = [n for n, o in found.items() if module != "graphgrad" and getattr(gg, n, None) is o]
    kinds = {name: kind(o) for name, o in found.items() if name not in known}
    plain = [name for name in kinds if kinds[name] is None]
    shown = [name for name in kinds if kinds[name] is not None]
    lines += [".. autosummary::", "   :nosignatures:", "", *(f"   {name}" for name in shown), ""]
    if plain:
        lines += ["Values: " + ", ".join(f"``{module}.{name}``" for name in plain) + ".", ""]
    if known:
        lines += ["Here too: " + ", ".join(f":py:obj:`graphgrad.{name}`" for name in known) + "."]
        lines += [""]
    for name in shown:
        lines += [f".. {kinds[name]}:: {module}.{name}"]
        lines += ["   :members:"] * (kinds[name] == "autoclass") + [""]
    for made in (type(found[name]) for name in plain if name == "select"):  # an object of methods
        lines += [f".. autoclass:: {made.__module__}.{made.__qualname__}", "   :members:", ""]
    return "\n".join(lines)


def kind(o):
    """The directive that shows it; None for what is a value."""
    if inspect.isclass(o):
        return "autoexception" if issubclass(o, BaseException) else "autoclass"
    return "autofunction" if inspect.isroutine(o) else None


def examples():
    """Every program in examples/, with its idea."""
    lines = [*headed("Examples", "="), "", "One idea a file; the tests run all of them.", ""]
    lines += [".. contents::", "   :local:", ""]
    for path in sorted((ROOT / "examples").glob("*.py")):
        idea = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))).split("\n")[0]
        lines += [*headed(path.stem.replace("_", " ").capitalize(), "-"), "", idea, ""]
        lines += [f".. literalinclude:: ../../examples/{path.name}", "   :language: python", ""]
    return "\n".join(lines)


def moved(path):
    """A document of the root, with links that hold in docs/_made/."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"\]\((?!https?:|#)(?:(docs/)|)([^)]+)\)", lambda m: link(m[1], m[2]), text)


def link(docs, target):
    """The end of a link to a page in docs/ or to another file of the repository."""
    return f"](../{target})" if docs else f"](../../{target})"


def index(pages):
    """The page that lists the pages of names."""
    lines = [*headed("API reference", "="), "", ".. toctree::", "   :maxdepth: 1", ""]
    return "\n".join([*lines, *(f"   {p.removeprefix('api/')}" for p in pages), ""])


def headed(title, line):
    """A heading of reStructuredText."""
    return [title, line * len(title)]


def slug(title):
    """A title as the name of a file."""
    return title.lower().replace(",", "").replace(":", "").replace(" ", "_")
