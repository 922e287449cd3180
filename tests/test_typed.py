"""Types are those of the values; right programs pass, plain mistakes are found, names are known."""

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import numpy as np
import pytest

import graphgrad as gg

from .typed import results

ROOT = Path(__file__).parent.parent
RIGHT, WRONG = ROOT / "tests" / "typed", ROOT / "tests" / "mistyped"
MODULES = [n for n in gg.__all__ if inspect.ismodule(getattr(gg, n))]


def mypy(*paths):
    """(file, line, code, message) of each error, and of each type that is revealed."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--output=json"]
    done = subprocess.run([*command, *paths], cwd=ROOT, capture_output=True, text=True)
    assert not done.stderr, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return [(ROOT / d["file"], d["line"], d["code"], d["message"]) for d in found]


def basedpyright(*paths):
    """The same of basedpyright, which finds its own options in pyproject.toml."""
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run([*command, *paths], cwd=ROOT, capture_output=True, text=True)
    found = json.loads(done.stdout)["generalDiagnostics"]
    places = [(Path(d["file"]), d["range"]["start"]["line"] + 1) for d in found]
    return [(*at, d.get("rule"), d["message"]) for at, d in zip(places, found, strict=True)]


@pytest.fixture(params=[mypy, basedpyright], ids=lambda checker: checker.__name__)
def checker(request):
    pytest.importorskip(request.param.__name__)
    return request.param


def mistakes():
    """{(file, line): what mypy calls the mistake}."""
    return {
        (path, line): text.rpartition("  # ")[2]
        for path in WRONG.glob("*.py")
        for line, text in enumerate(path.read_text().splitlines(), 1)
        if "  # " in text
    }


@pytest.mark.ci
def test_right_programs_pass_and_each_plain_mistake_is_found(checker):
    expected = mistakes()
    assert len(expected) > 50
    found = checker(RIGHT, WRONG)
    assert {(path, line) for path, line, *_ in found} == set(expected), found
    if checker is mypy:
        assert {(path, line): code for path, line, code, _ in found} == expected


@pytest.mark.ci
def test_every_public_name_is_known(checker, tmp_path):
    names = [f"gg.{n}" for n in dir(gg)]
    names += [f"gg.{m}.{n}" for m in MODULES for n in getattr(gg, m).__all__]
    rows = [f"reveal_type({name})" for name in names]
    file = tmp_path / "names.py"
    file.write_text("\n".join(["import graphgrad as gg", *rows]))
    shown = {line: re.search(r'is "(.*)"$', text)[1] for _, line, _, text in checker(file)}
    assert sorted(shown) == list(range(2, len(rows) + 2))
    unknown = {names[line - 2]: type for line, type in shown.items() if _unknown(type)}
    assert {n: t for n, t in unknown.items() if n.removeprefix("gg.") not in MODULES} == {}


def _unknown(type):
    """Whether it says nothing, or is that of a module."""
    return type in ("Any", "Never", "NoReturn", "Unknown") or "Module" in type


# --- at run time ----------------------------------------------------------------------------------


def fits(value, type, missing=False):
    """Whether a value is of a type; in `T | MaybeNone`, None may stand for any part."""
    whole, parts = get_origin(type) or type, get_args(type)
    if whole in (Union, UnionType):
        return fits(value, parts[0], missing=True)
    if whole is Any or value is None:
        return whole is Any or missing or type is None
    if whole is tuple:
        parts = parts[:1] * len(value) if parts[-1] is ... else parts
        return len(value) == len(parts) and all(map(fits, value, parts, [missing] * len(parts)))
    if whole in (list, dict):
        children = value.values() if whole is dict else value
        return isinstance(value, whole) and all(fits(v, parts[-1], missing) for v in children)
    return isinstance(value, whole)


@pytest.fixture
def checked(monkeypatch):
    """How many types were asserted, all of which hold."""
    seen = []

    def assert_type(value, type):
        assert fits(value, type), (value, type)
        seen.append(type)

    monkeypatch.setattr(results, "assert_type", assert_type)
    return seen


def test_what_is_typed_is_of_that_type_when_it_runs(checked):
    x = gg.constant(np.ones(3))
    p = results.Params(gg.variable(np.ones(3)), gg.variable(1.0))
    results.gradients(p, x)
    results.rows(x)
    results.values(p, x)
    results.compiled(p, x, {p.b: p.b + 1.0})
    results.one_batch(gg.constant(np.ones((2, 3))), p, lambda x, p: x)
    results.loops(x, p)
    results.more_loops(x, p)
    results.branches(x, p, shrink=True)
    results.derivatives(p, x)
    results.fetched(x, gg.Session())
    assert results.functions({"w": np.ones(3)}) == 3.0
    results.drawn()
    source = Path(results.__file__).read_text()
    assert len(checked) == source.count("assert_type(")
