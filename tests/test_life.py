"""Lives of graphs: when the last reference is gone, nothing that remembers holds one."""

from __future__ import annotations

import copy
import gc
import time
from importlib.util import find_spec
from weakref import ref

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import debug
from graphgrad.ir.build import apply
from graphgrad.ir.op import OP_TYPES

BACKENDS = ["numpy", *(["llvm"] if find_spec("llvmlite") else []), "jax"]
X = np.full((4, 3), 0.5)


@pytest.fixture(params=BACKENDS)
def backend(request, monkeypatch):
    if request.param == "jax":
        pytest.importorskip("jax")
    monkeypatch.setenv("GRAPHGRAD_BACKEND", request.param)
    return request.param


@pytest.fixture(autouse=True)
def registry():
    """Op types that a test defines are known while it runs."""
    before = dict(OP_TYPES)
    yield
    OP_TYPES.clear()
    OP_TYPES.update(before)


# --- programs: a number from a matrix, by what may hold the graph ---------------------------------


def plain(x):
    return gg.sum(gg.tanh(x) * 2.0)


def large(x):
    """Groups that NumPy runs in blocks."""
    return gg.sum(gg.tanh(gg.broadcast_to(x, (200, 100, 4, 3))) * 2.0)


def condition(x):
    w = gg.variable(np.ones((4, 3)))
    return gg.sum(gg.cond(gg.sum(x) > 0, lambda: x * w, lambda: gg.cos(x)))


def python_function(x):
    k = gg.exp(x)
    twice = lambda a: (k, a * 2.0)[1]  # noqa: E731
    return gg.sum(gg.py_function(twice, [x], [(x.shape, "float64")], lambda node, dy: dy * 2.0))


def region(x):
    k = gg.exp(x)
    with gg.override_gradient(lambda site, *dys: [k * dx for dx in site.default(*dys)]):
        y = gg.sin(x) * x
        with gg.override_gradient(lambda site, dy: dy * k):
            z = gg.exp(y)
    return gg.sum(z)


def custom(x):
    @gg.custom_gradient
    def f(x):
        y = gg.exp(x)
        return y, lambda dy: dy * y

    return gg.sum(f(x))


def stamped(x):
    k = gg.exp(x)
    with gg.gradient_override_map({"Tanh": lambda site, dy: dy * k}):
        return gg.sum(gg.tanh(x))


def batched(x):
    k = gg.exp(gg.sum(x))

    def f(row):
        with gg.override_gradient(lambda site, dy: dy * k):
            y = gg.sin(row)
        return gg.sum(gg.cond(gg.sum(row) > 0, lambda: y * row, lambda: y))

    return gg.sum(gg.vmap(f)(x))


def looped(x):
    k = gg.exp(gg.sum(x))

    def run(s, row):
        t = s * row
        with gg.override_gradient(lambda site, dy: dy * k):
            t = gg.tanh(t)
        return gg.while_loop(lambda c: gg.sum(c) < 2.0, lambda c: c * c + 1.5, t, max_trips=9), t

    s, rows = gg.scan(run, gg.sum(x, axis=0), x)
    return gg.sum(s) + gg.sum(gg.map(gg.sum, rows))


def recomputed(x):
    return gg.sum(gg.rules.checkpoint(region)(x))


def own_op(x):
    class Holder(gg.Op):
        fn: object
        elementwise = True

        def infer(self, x):
            return (x,)

        def kernel(self, xp, x):
            return x * 2.0

        def vjp(self, node, dy):
            return (dy * 2.0,)

    y = gg.tanh(apply(Holder(lambda: x), x))
    return gg.sum(gg.broadcast_to(y, (200, 100, 4, 3)) * apply(Holder(lambda: y), x))


@pytest.fixture(autouse=True, scope="module")
def _old():
    """What was there before is not looked at again by every collection."""
    gc.collect()
    gc.freeze()


PROGRAMS = [
    plain,
    large,
    condition,
    python_function,
    region,
    custom,
    stamped,
    batched,
    looped,
    recomputed,
    own_op,
]


# --- lives: what is done with one; each returns the graphs that it made ---------------------------


def built(program):
    with gg.Graph() as g:
        program(gg.placeholder((4, 3)))
    return [g]


def differentiated(program, length=4):
    """And run, with the second order."""
    with gg.Graph() as g:
        x = gg.placeholder((length, 3))
        y = program(x)
        dx = gg.gradients(y, x)
        ddx = gg.gradients(gg.sum(dx * dx), x, unconnected="zero")
        gg.compile(x, [y, dx, ddx])(X)
        gg.evaluate([y, dx], {x: X})
    return [g]


def pushed_forward(program):
    with gg.Graph() as g:
        x = gg.placeholder((4, 3))
        gg.compile(x, gg.jvp(program(x), x, x))(X)
    return [g]


def chosen(program):
    with gg.Graph() as g:
        x = gg.placeholder((4, 3))
        h = gg.sin(x)
        y = program(h)
        rule = lambda site, dy: dy * x  # noqa: E731
        gg.compile(x, gg.gradients(y, x, overrides={gg.select.nodes(h): rule}))(X)
        g.mark(gg.select.nodes(h), rule)
        gg.compile(x, gg.gradients(y, x))(X)
    return [g]


def with_state(program):
    """In a session, by updates, and by assignment."""
    with gg.Graph() as g, gg.Session(g) as session:
        x, w = gg.placeholder((4, 3)), gg.variable(1.0)
        y = program(x * w)
        dw = gg.gradients(y, w)
        session.run([dw, gg.assign(w, w - dw)], {x: X})
        gg.compile(x, y, updates={w: w - dw})(X)
    return [g]


def from_a_function(program):
    graphs = []

    def noted(x):
        graphs.append(x.graph)
        return program(x)

    gg.function(gg.value_and_grad(noted))(X)
    return graphs


def copied(program):
    """Copies and imports, with the rules that travel."""
    g, *_ = built(program)
    other, third = copy.deepcopy(g), gg.Graph()
    for h in (other, third):
        with h:
            found = h.nodes if h is other else gg.import_graph(g)
            x = next(t for t in _tensors(found) if t.node.type == "Placeholder")
            y = _tensors(found)[-1]
            gg.compile(x, gg.gradients(y, x))(X)
    return [g, other, third]


def _tensors(found):
    if isinstance(found, dict):
        return list(found.values())
    return [t for node in found for t in node.outputs]


def looked_at(program):
    with gg.Graph() as g:
        x = gg.placeholder((4, 3))
        y = program(x)
        dx = gg.gradients(y, x)
        str(gg.explain(y, x))
        str(gg.lint(g))
        gg.to_html([y, dx])
        gg.to_dot([y, dx])
        gg.compile(x, [y, dx]).explain()
        debug.values([y, dx], {x: X})
    return [g]


def failed(program):
    with gg.Graph() as g:
        x = gg.placeholder((4, 3))
        h = gg.sin(x)
        y = program(h)
        with pytest.raises(gg.GraphGradError):
            x @ gg.ones(2)
        with pytest.raises(ZeroDivisionError):
            gg.gradients(y, x, overrides={gg.select.nodes(h): _broken})
        with pytest.raises(gg.ShapeError):
            gg.compile(x, y)(X[:2])
    return [g]


def _broken(site, *dys):
    1 / 0


LIVES = [
    built,
    differentiated,
    pushed_forward,
    chosen,
    with_state,
    from_a_function,
    copied,
    looked_at,
    failed,
]


@pytest.mark.parametrize(
    ("backend", "program", "live"),
    [
        pytest.param(backend, program, live, id=f"{backend}-{program.__name__}-{live.__name__}")
        for k, backend in enumerate(BACKENDS)
        for i, program in enumerate(PROGRAMS)
        for j, live in enumerate(LIVES)
        if k == 0 or (i + j + k) % 3 == 0  # all on one backend, each of both on every one
    ],
    indirect=["backend"],
)
def test_no_graph_outlives_its_last_reference(program, live, backend):
    graphs = [ref(g) for g in live(program)]
    assert graphs
    assert _are_gone(graphs, backend)


def _are_gone(graphs, backend):
    gc.collect()
    if backend == "jax":  # its threads let go of what they ran a little after they returned it
        until = time.monotonic() + 20
        while any(g() is not None for g in graphs) and time.monotonic() < until:
            time.sleep(0.01)
            gc.collect()
    return not any(g() is not None for g in graphs)


def test_no_cache_keeps_an_op_class_whose_methods_close_over_a_graph(backend):
    def closing(x):
        class Closing(gg.Op):
            def infer(self, t):
                return (t,)

            def kernel(self, xp, a):
                return (x, a * 2.0)[1]

            def vjp(self, node, dy):
                return (dy * 2.0,)

        return gg.sum(apply(Closing(), x))

    graphs = [ref(g) for g in differentiated(closing)]
    del OP_TYPES["Closing"]  # who registers a class says how long it is known
    assert _are_gone(graphs, backend)
