"""The hunt for mutants: what is changed, which one survives, and which do not."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "mutate.py"

SOURCE = """
from functools import cache

def least(a, b):
    if a < b:
        return a
    return b


def steps(n):
    count = 0
    while n > 0:
        n -= 1
        count += 1
    return count


def doubled(n):
    return 2 * n


FOUR = doubled(2)


def unused(n):
    return 3 * n


@cache
def halves():
    return [n / 2 for n in range(1, 4)]


ONE, *_ = halves()
"""

TESTS = """
from planted.numbers import halves, least, steps

def test_least():
    assert least(1, 2) == 1
    assert least(2, 1) == 1

def test_steps():
    assert steps(3) == 3

def test_that_fails_anyway():
    assert steps(3) == 4

def test_that_there_are_halves():
    assert halves()

def test_halves():
    assert halves() == [0.5, 1.0, 1.5]
"""


@pytest.fixture(scope="module")
def mutate():
    spec = importlib.util.spec_from_file_location("mutate", TOOL)
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutate"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def planted(tmp_path):
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted" / "__init__.py").touch()
    (tmp_path / "planted" / "numbers.py").write_text(SOURCE)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_numbers.py").write_text(TESTS)

    def run(*options):
        found = subprocess.run(
            [
                *(sys.executable, str(TOOL), "--root", str(tmp_path), "--sources", "planted"),
                *("--tests", "tests", "--map", str(tmp_path / "map"), "--verbose", *options),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (found.returncode, found.stderr) == (0, "")
        return found.stdout

    return run


def of(mutate, text):
    """What the mutants of a text are."""
    return [m.text for m in mutate.mutants_of("x.py", text)]


def test_what_changes_nothing_is_no_mutant(mutate):
    text = '''
def f(x: int = 0) -> None:
    """Text."""
    y: int
    while True:
        raise ValueError(f"{x + 1} is {not x}")
    zip(x, y, strict=True)
'''
    assert of(mutate, text) == ["True  ->  False", "zip(x, y, strict=True)  ->  pass"]


def test_every_kind_of_change(mutate):
    text = """
def f(x, found):
    if x in found and not x.done:
        found[x] = x[1:]
        found.clear()
        return x
"""
    assert of(mutate, text) == [
        "x in found and (not x.done)  ->  True",
        "x in found and (not x.done)  ->  False",
        "x in found and (not x.done)  ->  x in found or not x.done",
        "x in found and (not x.done)  ->  not x.done",
        "x in found and (not x.done)  ->  x in found",
        "x in found  ->  x not in found",
        "not x.done  ->  x.done",
        "found[x] = x[1:]  ->  pass",
        "1:  ->  :",
        "1  ->  0",
        "found.clear()  ->  pass",
        "return x  ->  return None",
    ]


def test_every_file_gets_its_share(mutate):
    small, large = (mutate.mutants_of(f"{i}.py", SOURCE * n) for i, n in enumerate((1, 9)))
    chosen = mutate.sampled([*small, *large], 20, 1)
    assert [sum(m.path == p for m in chosen) for p in ("0.py", "1.py")] == [2, 18]
    assert chosen == mutate.sampled([*small, *large], 20, 1)
    assert len(mutate.sampled([*small, *large], 10_000, 1)) == len(small) + len(large)


@pytest.mark.ci
def test_a_mutant_that_no_test_sees_survives_and_the_others_are_killed(planted):
    found = planted("--only", "numbers.py:5")
    assert "since they fail:\n  tests/test_numbers.py::test_that_fails_anyway\n" in found
    assert "survived 1 tests: planted/numbers.py:5:8: a < b  ->  a <= b\n" in found
    assert found.count("killed by tests/test_numbers.py::test_least") == 2
    assert "2 of    3" in found


@pytest.mark.ci
def test_a_mutant_that_hangs_is_killed(planted):
    found = planted("--only", "n -= 1  ->  pass", "--patience", "1")
    assert "killed by no answer: planted/numbers.py:13" in found


@pytest.mark.ci
def test_what_is_run_at_import_alone_is_not_tried_and_what_is_never_run_survives(planted):
    found = planted("--only", "return ")
    assert "return 2 * n" not in found
    assert "survived 0 tests: planted/numbers.py:26:5: return 3 * n  ->  return None" in found


@pytest.mark.ci
def test_every_test_that_reads_what_is_cached_counts_and_reads_what_the_mutant_makes(planted):
    found = planted("--only", "numbers.py:31")
    assert "killed by tests/test_numbers.py::test_halves: planted/numbers.py:31" in found
    assert "survived" not in found
