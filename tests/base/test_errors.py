"""The errors: each is a GraphGradError and the builtin that fits."""

import pickle

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base import errors
from graphgrad.base.errors import (
    DTypeError,
    DuplicateGradientError,
    ExecutionError,
    GraphGradError,
    ShapeError,
    counted,
    did_you_mean,
)

BUILTIN = {
    "DTypeError": TypeError,
    "DeviceError": ValueError,
    "DuplicateGradientError": KeyError,
    "ExecutionError": RuntimeError,
    "GradientError": ValueError,
    "GraphError": ValueError,
    "ExportError": ValueError,
    "FileError": ValueError,
    "GraphFormatError": ValueError,
    "GraphGradError": Exception,
    "MissingBackendError": ImportError,
    "RegionError": ValueError,
    "ScopeError": RuntimeError,
    "ShapeError": ValueError,
    "StateError": ValueError,
    "SymbolicError": TypeError,
    "UnknownBackendError": LookupError,
    "UnknownGradientError": LookupError,
}


def test_every_error_is_listed():
    assert sorted(errors.__all__) == sorted([*BUILTIN, "PerformanceWarning"])


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


@pytest.mark.parametrize("kind", [ShapeError, DTypeError, DuplicateGradientError, ExecutionError])
def test_what_names_hide_is_spelled_out(kind):
    error = kind("no \x1b[31mred\nhere \u202e")
    assert str(error) == "no \\x1b[31mred\nhere \\u202e"
    assert error.args == ("no \x1b[31mred\nhere \u202e",)


def test_so_are_the_notes_of_building_and_running():
    name = "a\x1b[31m"
    with gg.Graph() as g:
        x = gg.placeholder((None,), name="x")
        y = gg.placeholder((3,), name="y")
        x.node._name = y.node._name = name
        z = gg.reshape(gg.exp(x), (2, 2)) + 1.0
        with pytest.raises(gg.ShapeError) as built:
            y + np.ones(4)
    f = gg.compile(x, z, backend="numpy")
    with pytest.raises(gg.ShapeError) as run:
        f(np.ones(3))
    h = gg.py_function(lambda a: 1 / 0, [x], [x.type])
    with pytest.raises(ZeroDivisionError) as raised:
        gg.evaluate(h, {x: np.ones(3)})
    for error in (built.value, run.value, raised.value):
        notes = "\n".join(error.__notes__)
        assert "\x1b" not in notes
    assert "a\\x1b[31m" in "\n".join(built.value.__notes__)
    assert run.value.failed in g.nodes


def test_what_asks_for_a_number_too_early_names_what_does_it_in_the_graph():
    x, n = gg.placeholder((8,)), gg.placeholder((), "int64")
    for action, names in (
        (lambda: x[n : n + 2], ["gg.dynamic_slice", "gg.take"]),
        (lambda: range(n), ["gg.fori_loop", "gg.scan"]),
        (lambda: bool(n > 0), ["gg.while_loop", "gg.cond"]),
    ):
        with pytest.raises(gg.base.errors.SymbolicError) as error:
            action()
        assert all(name in str(error.value) for name in names)
