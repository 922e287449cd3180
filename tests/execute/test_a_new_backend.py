"""The backend of CONTRIBUTING.md runs every op, and has a default for each capability."""

import re
from pathlib import Path

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.execute import loading
from graphgrad.execute.backend import Backend, Compiled
from graphgrad.execute.run.planned import PlannedBackend, PlannedByShapes, PlannedProgram
from graphgrad.laws.backends import agrees

from ..each import by_law, each
from ..laws.cases import CASES

GUIDE = (Path(__file__).resolve().parents[2] / "CONTRIBUTING.md").read_text()
(EXAMPLE,) = [
    b for b in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL) if "class CountingBackend" in b
]


def counting():
    names = {}
    exec(EXAMPLE, names)
    return names["CountingBackend"]()


COUNTING = counting()
TABLES = GUIDE.partition("## A backend")[2].partition("## A release")[0]


LAW = {"agrees with NumPy": lambda op, arrays: agrees(op, arrays, COUNTING)}


@each(by_law(LAW, CASES), sample=2)
def test_it_computes_every_op(law, op, arrays):
    law(op, arrays)


@pytest.mark.parametrize("base", [Backend, Compiled])
def test_the_guide_names_every_capability(base):
    own = {*vars(base), *base.__annotations__} - {"name", "kernels", "compile", "__init__"}
    assert {n for n in own if n[0] != "_"} == {
        n for n in re.findall(r"`(\w+)`", TABLES) if n in own
    }


def program(x):
    w = gg.variable(np.ones(3), name="w")
    y = gg.sum(gg.tanh(x) * w)
    return y, {w: w + gg.gradients(y, x)[0]}


@pytest.mark.parametrize("lengths", [(4, 3), ("N", 3)])
def test_every_way_to_use_a_function_works_by_the_defaults(lengths):
    found = []
    for backend in (COUNTING, "numpy"):
        with gg.Graph():
            x = gg.placeholder(lengths, name="x")
            y, updates = program(x)
            f = gg.compile(x, y, updates=updates, backend=backend)
        values = [f(np.full((4, 3), 0.5)), f(x=np.full((4, 3), 0.5)), f.state_tree()["w"]]
        found.append(values)
        f.release()
        assert "reads w" in f.explain()
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_what_a_backend_does_not_say_is_not_known_or_an_error():
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        f = gg.compile(x, gg.exp(x), backend=COUNTING)
        assert f.plans == []
        assert f.peak_bytes is None
        f(np.ones(3))
        assert f.explain().startswith("backend counting\n")
        assert f.explain().endswith("ran 1 times")
        with pytest.raises(gg.ExecutionError, match="'counting' runs a program as a whole"):
            f.profile(np.ones(3))
        with pytest.raises(gg.DeviceError, match="compiled with mesh="):
            gg.distributed.from_local(f, np.ones(3))
        with pytest.raises(gg.ExecutionError, match="memory=1 bytes are not enough"):
            gg.compile(x, gg.exp(x), backend=COUNTING, memory=1)
    with gg.Graph():
        x = gg.placeholder((None,))
        with pytest.raises(gg.ExecutionError, match="'counting' backend needs inputs of known"):
            gg.compile(x, gg.exp(x), backend=COUNTING, memory=100)


def test_any_object_that_compiles_is_a_backend():
    class Other:
        name = "other"

        def compile(self, program):
            return COUNTING.compile(program)

    with gg.Graph():
        x = gg.placeholder((3,))
        f = gg.compile(x, gg.exp(x), backend=Other())
    np.testing.assert_array_equal(f(np.zeros(3)), np.ones(3))
    assert f.backend.name == "other"
    with pytest.raises(NotImplementedError, match=r"Backend has no compile\(program\)"):
        Backend().compile(f.program)


def test_names_lead_to_it(monkeypatch):
    monkeypatch.setitem(loading.BUILT_IN, "counting", lambda: type(COUNTING))
    assert isinstance(loading.load_backend("counting"), type(COUNTING))


def test_the_backends_of_graphgrad_are_such():
    assert issubclass(PlannedBackend, Backend)
    assert issubclass(PlannedProgram, Compiled)
    assert issubclass(PlannedByShapes, Compiled)
