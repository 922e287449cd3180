"""`gg.testing` and `pytest --graphgrad-rules`: rules of other packages are checked."""

from pathlib import Path

import numpy as np
import pytest

import graphgrad as gg

hypothesis = pytest.importorskip("hypothesis")
pytest_plugins = "pytester"

ROOT = Path(__file__).resolve().parents[1]

RULES = """
import graphgrad as gg

@gg.register_gradient("leaky", linear=True)
def leaky(site, dy):
    (x,) = site.inputs
    return gg.where(x > 0, dy, dy / 10.0)

@gg.register_gradient("swapped")
def swapped(site, dy):
    x, y = site.inputs
    return dy * x, dy * y
"""
WRONG = """
@gg.register_gradient("squared", linear=True)
def squared(site, dy):
    return dy * dy

@gg.register_gradient("summed")
def summed(site, dy):
    return gg.sum(dy)
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Run pytest with the plugin and the flag, in a process that has no other rules."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def run(rules, conftest="", *, ini="graphgrad_import = rules", flag="--graphgrad-rules"):
        pytester.makepyfile(rules=rules, conftest=conftest, test_own="def test_own(): pass")
        pytester.makeini(f"[pytest]\n{ini}\npythonpath = .\n")
        return pytester.runpytest_subprocess("-p", "_graphgrad_pytest", "-v", *flag.split())

    return run


@pytest.mark.ci
def test_every_registered_rule_is_an_item(run):
    done = run(RULES + WRONG)
    done.assert_outcomes(passed=3, failed=2)
    done.stdout.fnmatch_lines(
        [
            "*rule[[]leaky[]] PASSED*",
            "*rule[[]squared[]] FAILED*",
            "*rule[[]summed[]] FAILED*",
            "*rule[[]swapped[]] PASSED*",
            "*not linear*",
            "*gives no gradients of an element-wise function*",
        ]
    )


@pytest.mark.ci
def test_examples_say_what_a_rule_is_for(run):
    conftest = """
    import numpy as np, graphgrad as gg
    def pytest_graphgrad_examples():
        product = gg.testing.Example(gg.multiply, [np.array([0.5, 2.0]), np.array([3.0, -1.0])])
        return {"leaky": None, "swapped": product}
    """
    done = run(RULES, conftest)
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*[[]truth[]] *not the derivative of the site*"])


def test_without_the_flag_nothing_is_imported(run):
    run("raise AssertionError", flag="-rA").assert_outcomes(passed=1)


@pytest.mark.ci
def test_examples_for_a_rule_that_is_not_there_are_an_error(run):
    conftest = "def pytest_graphgrad_examples():\n    return {'leeky': None}"
    done = run(RULES, conftest)
    done.stderr.fnmatch_lines(["*not registered: *leeky*"])


def test_a_rule_of_the_library_passes():
    for rule in (gg.rules.ste(), gg.rules.scale(2.0), gg.rules.clip_value(0.5)):
        assert all(gg.testing.check_rule(rule, max_examples=5))


@pytest.mark.ci
def test_what_hypothesis_finds_is_the_simplest(monkeypatch):
    rule = gg.Rule(lambda site, dy: gg.where(gg.abs(dy) > 0, dy, dy) * dy, "odd", linear=True)
    with pytest.raises(gg.GradientError, match="not linear"):
        gg.testing.check_rule(rule)


def test_strategies_draw_what_was_asked_for():
    drawn = gg.testing.examples(inputs=3, shapes=[(2, 1)], dtypes=["float32"])

    @hypothesis.settings(max_examples=5, deadline=None, database=None, derandomize=True)
    @hypothesis.given(drawn)
    def check(example):
        assert [a.shape for a in example.arrays] == [(2, 1)] * 3
        assert {a.dtype for a in example.arrays} == {np.dtype("float32")}
        assert gg.check_gradient(lambda site, *dys: site.default(*dys), *example.flat())

    check()
    with pytest.raises(ValueError, match="inputs"):
        gg.testing.examples(inputs=0)


def test_without_hypothesis_it_says_so(monkeypatch):
    monkeypatch.setattr("graphgrad.testing.hypothesis", None)
    with pytest.raises(ImportError, match="pip install hypothesis"):
        gg.testing.check_rule(gg.rules.ste())
