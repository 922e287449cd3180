"""Sessions: fetches, feeds, state of their own."""

import copy
import pickle

import numpy as np
import pytest

import graphgrad as gg
import graphgrad.ops.protocols.methods
from graphgrad.base.errors import GraphError
from graphgrad.ir.graph import Graph, default_graph
from graphgrad.ops.elementwise.exponential import exp
from graphgrad.ops.sources import assign, placeholder, variable
from graphgrad.session import Session


@pytest.fixture
def g():
    with Graph() as graph:
        yield graph


def test_fetches_have_the_structure_asked_for(g):
    x = placeholder((), name="x")
    y, z = x + 1.0, x * 2.0
    s = Session(g)
    assert s.run(y, {x: 1.0}) == 2.0
    assert s.run([y, (z, {"k": [y]})], {x: 1.0}) == [2.0, (2.0, {"k": [2.0]})]
    assert s.run(["x:0", y.name, None], {x: 1.0}) == [1.0, 2.0, None]
    assert s.run([], {}) == []


def test_any_tensor_is_fed_by_itself_or_by_name(g):
    x = placeholder((), name="x")
    y = exp(x)
    z = y + 1.0
    s = Session(g)
    assert s.run(z, {y: 1.0}) == 2.0
    assert s.run(z, {"x": 0.0}) == 2.0
    assert s.run([x, z], {"x:0": 0.0, y: 5.0}) == [0.0, 6.0]
    with pytest.raises(GraphError, match="fed twice"):
        s.run(z, {"x": 0.0, x: 0.0})
    with pytest.raises(GraphError, match="placeholders that are not"):
        s.run(z)


def test_a_node_runs_and_is_fetched_as_none(g):
    v = variable(1.0)
    a = assign(v, v * 2.0)
    s = Session(g)
    assert s.run([a.node, v]) == [None, 1.0]
    assert s.run(v) == 2.0
    assert s.run(a.node) is None
    assert s.run([a, v]) == [8.0, 4.0]


def test_each_session_has_its_own_values(g):
    v = variable(1.0)
    a = assign(v, v + 1.0)
    one, two = Session(g), Session(g)
    one.run(a)
    one.run(a)
    assert (one.run(v), two.run(v), g.state[v]) == (3.0, 1.0, 1.0)
    assert one.state[v] == 3.0


def test_a_fetch_is_compiled_once(g):
    x = placeholder((), name="x")
    y = exp(x)
    s = Session(g)
    for value in range(3):
        s.run({"y": y}, {x: float(value)})
    s.run(y, {x: 1.0})
    assert len(s._compiled) == 1
    z = y + 1.0
    assert s.run(z, {x: 0.0}) == 2.0


def test_the_session_is_a_context(g):
    with Graph(), Session(g) as s:
        assert default_graph() is g
        x = placeholder((), name="later")
        assert s.run(x + 1.0, {x: 1.0}) == 2.0
    assert default_graph() is g
    with pytest.raises(RuntimeError, match="closed"):
        s.run(x, {x: 1.0})


def test_the_default_graph_is_the_default(g):
    assert Session().graph is g


def test_tensors_of_another_graph(g):
    s = Session(g)
    with Graph():
        y = placeholder((), name="y")
    with pytest.raises(GraphError, match="the session runs"):
        s.run(y, {y: 1.0})
    with pytest.raises(GraphError, match="fetches are"):
        s.run(3.0)


def test_a_session_cannot_be_copied(g):
    s = Session(g)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            attempt(s)


def test_fed_arrays_are_checked(g):
    x = placeholder((2,), name="x")
    with pytest.raises(ValueError, match="'x'"):
        Session(g).run(x, {x: np.ones(3)})


def test_a_session_starts_from_the_present_values_of_the_graph_or_from_the_initial_ones():
    with gg.Graph() as g:
        w = gg.variable(0.0, name="w")
        step = gg.compile([], w, updates={w: w + 1.0})
    step()
    step()
    trained, fresh = gg.Session(g), gg.Session(g, fresh=True)
    step()
    assert (trained.run(w), fresh.run(w), g.state[w]) == (2.0, 0.0, 3.0)
    with g:
        add = gg.assign(w, w + 10.0)
    trained.run(add)
    assert (trained.run(w), g.state[w]) == (12.0, 3.0)
