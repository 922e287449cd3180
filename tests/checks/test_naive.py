"""`lint` on naive forms: from where they are wrong in a dtype, and what to write instead."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.checks.naive import _stable
from graphgrad.healing.table import IDENTITIES


def findings(f, dtype="float64", shape=()):
    with gg.Graph() as graph:
        f(gg.placeholder(shape, dtype=dtype, name="x"))
    return [found for found in gg.lint(graph) if found.kind in ("naive form", "masked argument")]


THRESHOLDS = [
    (lambda x: gg.log(1 + gg.exp(x)), "float64", "x from 709.8: the value is infinite"),
    (lambda x: gg.log(1 + gg.exp(x)), "float32", "x from 88.72: the value is infinite"),
    (lambda x: gg.log(1 + gg.exp(x)), "bfloat16", "x from 88.75: the value is infinite"),
    (lambda x: gg.sqrt(x * x), "float32", "x from 1.845e19: the value is infinite"),
    (lambda x: gg.sqrt(x * x), "float64", "e154: the value is infinite"),
    (lambda x: 1 - gg.special.erf(x), "float32", "x from 2.331 to 9.951"),
    (lambda x: gg.sin(x) / x, "float32", "x at 0: the value is NaN"),
]


@pytest.mark.parametrize(("f", "dtype", "words"), THRESHOLDS)
def test_it_says_from_where_in_the_dtype_in_use(f, dtype, words):
    (found,) = findings(f, dtype)
    assert found.kind == "naive form"
    assert f"in {dtype}, " in found.message
    assert words in found.message


def test_the_threshold_is_that_of_a_run():
    x = gg.placeholder((2,), dtype="float32")
    with np.errstate(all="ignore"):
        below, above = gg.compile(x, gg.log(1 + gg.exp(x)))(np.float32([88.71, 88.73]))
    assert np.isfinite(below)
    assert np.isinf(above)


def test_it_names_the_function_to_write():
    (found,) = findings(lambda x: gg.log(1 + gg.exp(x)))
    assert "Write gg.nn.softplus(x), or gg.heal(ys)" in found.suggestion
    (found,) = findings(lambda x: gg.log(gg.sum(gg.exp(x))), shape=(3,))
    assert "Write gg.special.logsumexp(x)" in found.suggestion


@pytest.mark.parametrize("identity", IDENTITIES, ids=lambda i: i.name)
def test_every_function_that_is_named_is_there(identity):
    words = _stable(identity)
    if words.startswith("gg."):
        member = gg
        for part in words.partition("(")[0].split(".")[1:]:
            member = getattr(member, part)
        assert callable(member)


MASKED = [
    lambda x: gg.sqrt(x * x * gg.cast(x > 0, "float64")),
    lambda x: gg.log(gg.cast(x > 0, "float64") * x),
    lambda x: 1.0 / (x * gg.cast(gg.logical_and(x > 0, x < 1), "float64")),
]


@pytest.mark.parametrize("f", MASKED)
def test_a_mask_where_a_choice_belongs_makes_nan(f):
    found = [each for each in findings(f, shape=(3,)) if each.kind == "masked argument"]
    assert len(found) == 1
    assert "Choose instead of multiplying" in found[0].suggestion
    x = gg.placeholder((3,))
    dx = gg.gradients(gg.sum(f(x)), x)
    with np.errstate(all="ignore"):
        assert np.isnan(gg.compile(x, dx)(np.array([-2.0, 0.5, 2.0]))).any()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: gg.sqrt(x * x * gg.cast(x > 0, "float64") + 1e-6),
        lambda x: gg.sqrt(gg.nn.relu(x)),
        lambda x: gg.exp(x * gg.cast(x > 0, "float64")),
        lambda x: gg.sqrt(x),
    ],
)
def test_what_has_a_slope_is_left_in_peace(f):
    assert [found.kind for found in findings(f)] == []


def test_a_rule_of_its_own_has_a_slope():
    def ruled(x):
        with gg.gradient_override_map({"Sqrt": "Identity"}):
            return gg.sqrt(x * gg.cast(x > 0, "float64"))

    assert findings(ruled) == []
