"""The errors: each is a GraphGradError and the builtin that fits."""

import pickle

import pytest

from graphgrad.ir import errors
from graphgrad.ir.errors import DuplicateGradientError, GraphGradError, counted, did_you_mean

BUILTIN = {
    "DTypeError": TypeError,
    "DuplicateGradientError": KeyError,
    "ExecutionError": RuntimeError,
    "GradientError": ValueError,
    "GraphError": ValueError,
    "GraphGradError": Exception,
    "RegionError": ValueError,
    "ScopeError": RuntimeError,
    "ShapeError": ValueError,
    "StateError": ValueError,
    "SymbolicError": TypeError,
    "UnknownGradientError": LookupError,
}


def test_every_error_is_listed():
    assert sorted(errors.__all__) == sorted(BUILTIN)


@pytest.mark.parametrize("name", BUILTIN)
def test_an_error_is_a_GraphGradError_and_the_builtin_that_fits(name):
    error = getattr(errors, name)("two\nlines")
    assert isinstance(error, GraphGradError)
    assert isinstance(error, BUILTIN[name])
    assert str(error) == "two\nlines"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (type(error), "two\nlines")


def test_a_KeyError_that_reads_as_a_sentence():
    assert str(DuplicateGradientError("it's taken")) == "it's taken"


@pytest.mark.parametrize(
    ("name", "known", "said"),
    [
        ("encodr/h", ["decoder", "encoder/h", "x"], "Did you mean 'encoder/h'?"),
        ("RELU", ["Rel", "Relu", "RELA"], "Did you mean 'Relu'?"),
        ("X", ["x"], "Did you mean 'x'?"),
        ("abc", ["xyz"], "Use another."),
        ("abc", [], "Use another."),
        ("", ["x"], "Use another."),
        ("new\nlin", ["new\nline"], r"Did you mean 'new\nline'?"),
    ],
)
def test_the_nearest_name_is_offered_and_no_other(name, known, said):
    assert did_you_mean(name, known, "Use another.") == said
    assert did_you_mean(name, iter(known), "Use another.") == said


def test_without_a_near_name_there_is_nothing_to_say():
    assert did_you_mean("abc", ["xyz"]) == ""


def test_things_are_counted_in_words():
    assert [counted(n, "node") for n in (0, 1, 2)] == ["0 nodes", "1 node", "2 nodes"]
