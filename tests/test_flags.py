"""Every public flag is True or False: "no" is not False, and is refused."""

import ast
import doctest
import inspect
import os
import re
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pytest

import graphgrad as gg

from .each import each
from .test_docstrings import FOUND, NEEDS

EXAMPLES = {"Overlay": "gg.Overlay({})", "lrp_product": "gg.rules.lrp_product()"}
"""Calls of what the example in the docstring does not call."""

MADE_HERE = {"CompiledFunction", "PathOf", "Region", "Entry", "Batches"}
"""What graphgrad makes, and users do not."""


def flags(function):
    """The parameters of a function that are annotated as a bool."""
    found = inspect.signature(function).parameters.values()
    flag = r"(builtins\.)?bool( \| None)?"
    return [p.name for p in found if re.fullmatch(flag, str(p.annotation))]


class Given(ast.NodeTransformer):
    """Every call of a function in a statement, with a flag that is "no"."""

    def __init__(self, name, flag):
        self.name, self.flag, self.calls = name, flag, 0

    def visit_Call(self, call):
        self.generic_visit(call)
        if ast.unparse(call.func).rpartition(".")[2] == self.name:
            self.calls += 1
            others = [k for k in call.keywords if k.arg != self.flag]
            call.keywords = [*others, ast.keyword(self.flag, ast.Constant("no"))]
        return call


def run_with_no(function, flag):
    """The example of a function up to its first call, in which the flag is "no"."""
    name = function.__name__
    text = f">>> {EXAMPLES[name]}" if name in EXAMPLES else inspect.getdoc(function)
    names = {"gg": gg, "np": np}
    for example in doctest.DocTestParser().get_examples(text):
        given = Given(name, flag)
        tree = ast.fix_missing_locations(given.visit(ast.parse(example.source)))
        exec(compile(tree, "example.py", "exec"), names)
        if given.calls:
            return
    raise LookupError(f"the example of {name} does not call it")


FLAGS = [
    (f"{module.rpartition('.')[2]}.{name} {flag}", function, flag)
    for module, functions in FOUND.items()
    for name, function in functions.items()
    if name not in MADE_HERE
    for flag in flags(function)
]


@each(FLAGS, group=lambda name: "all")
@pytest.mark.usefixtures("own_names")
def test_a_flag_is_true_or_false(function, flag):
    for module, package in NEEDS.items():
        if function.__module__.startswith(module):
            pytest.importorskip(package)
    with gg.Graph(), redirect_stdout(StringIO()), pytest.raises(TypeError) as caught:
        run_with_no(function, flag)
    assert f"{flag} is True or False, got 'no'" in str(caught.value)


def test_there_are_flags():
    assert len(FLAGS) > 140


def test_methods_hand_their_flags_on():
    t = gg.constant([[1.0, 2.0]])
    for name in ("sum", "mean", "max", "all", "std", "argmin"):
        with pytest.raises(TypeError, match="keepdims is True or False"):
            getattr(t, name)(keepdims="no")
    assert t.sum(keepdims=np.True_).shape == (1, 1)


def test_a_flag_of_numpy_is_kept_as_pythons():
    """Files and pages are JSON, which knows no other."""
    yes, no = np.True_, np.False_
    with gg.Graph() as graph:
        v = gg.variable([1.0, 2.0], trainable=yes, slot=no)
        with gg.override_gradient("Identity", late=no, allow_empty=no):
            y = gg.sign(v)
        graph.mark(gg.select.op("Sign"), "Identity", late=no, allow_empty=no, allow_inside=True)
        gg.mean(y, keepdims=yes, where=y > 0)
    attrs = [value for node in graph.nodes for value in node.attrs.values()]
    assert not any(isinstance(value, np.bool_) for value in attrs)
    gg.save(os.devnull, graph)
    gg.to_html(y, panes=no)
