"""S42: captures are slots. Inputs that are one tensor behave as inputs that are equal."""

import pickle

import numpy as np

import graphgrad as gg

from ..each import each

Y = np.array([0.4, 0.3, 0.9])


def unequal(site, dy):
    """Not symmetric in the two inputs, by way of the default and by hand."""
    da, db = site.default(dy)
    a, b = site.inputs
    return [2.0 * da + dy * a, 3.0 * db - dy * b]


def marked(a, b):
    with gg.override_gradient(unequal):
        return gg.sin(a) * b


def by_arguments(a, b):
    @gg.custom_gradient
    def f(a, b):
        return a * b, lambda dy: (2.0 * dy * b, 3.0 * dy * a)

    return f(a, b)


def of_captures(a, b):
    @gg.custom_gradient
    def f(u):
        return u * a * b, lambda dy: {u: dy * a * b, a: 2.0 * dy * b * u, b: 3.0 * dy * a * u}

    return f(gg.sin(a))


def both_ways(a, b):
    return gg.cond(gg.sum(a) > 0, lambda: marked(a, b) + b, lambda: a)


def in_runs(a, b):
    return gg.scan(lambda c, row: (marked(c, b) + row * a, None), a, gg.stack([a, b]))[0]


def while_small(a, b):
    c = gg.constant(0)
    return gg.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, marked(c[1], b) * a), (c, a))[1]


def recomputed(a, b):
    return gg.rules.checkpoint(lambda a, b: gg.sin(a) * b)(a, b)


FUNCTIONS = [marked, by_arguments, of_captures, both_ways, in_runs, while_small, recomputed]


def library(f, *, differentiated=False):
    with gg.Graph() as graph:
        a, b = gg.placeholder((3,), name="a"), gg.placeholder((3,), name="b")
        z = f(a, b)
        if differentiated:
            z = z + sum(gg.gradients(z, [a, b]))
        gg.identity(z, name="z")
    return graph


def imported(f, a, b, **how):
    graph = library(f, **how)
    return gg.import_graph(graph, {graph.tensor("a:0"): a, graph.tensor("b:0"): b})[
        graph.tensor("z:0")
    ]


def imported_derivative(f, a, b):
    return imported(f, a, b, differentiated=True)


def by_way_of(carry):
    """In a graph that imported the library, and then was carried."""

    def journey(f, a, b):
        with gg.Graph() as around:
            y = gg.placeholder((3,), name="y")
            gg.identity(imported(f, y, y if a is b else gg.identity(y)), name="w")
        graph = carry(around)
        return gg.import_graph(graph, {graph.tensor("y:0"): a})[graph.tensor("w:0")]

    return journey


def saved(tmp):
    def carry(graph):
        gg.save(tmp / "graph.gg", graph)
        return gg.load(tmp / "graph.gg").graph

    return carry


def mapped(f, a, b):
    rows = gg.stack([a, 2.0 * a])
    return gg.vmap(f)(rows, rows if a is b else gg.identity(rows))


def mapped_shared(f, a, b):
    return gg.vmap(lambda t, a, b: t * f(a, b), in_axes=(0, None, None))(
        gg.constant([1.0, 2.0]), a, b
    )


def mapped_once_shared(f, a, b):
    return gg.vmap(lambda a, b: f(a, b), in_axes=(0, None))(gg.stack([a, 2.0 * a]), b)


def in_a_loop(f, a, b):
    return gg.scan(lambda c, _: (c + imported(f, a, b), None), a, None, length=2)[0]


def carried(f, a, b):
    return gg.scan(lambda c, _: ((imported(f, *c), c[0]), None), (a, b), None, length=2)[0][0]


def in_a_branch(f, a, b):
    return gg.cond(gg.sum(a) > 0, lambda: imported(f, a, b), lambda: imported(f, b, a))


JOURNEYS = {
    "import": imported,
    "import of a derivative": imported_derivative,
    "copy": by_way_of(gg.Graph.copy),
    "pickle": by_way_of(lambda graph: pickle.loads(pickle.dumps(graph))),
    "vmap": mapped,
    "vmap, shared": mapped_shared,
    "vmap, one shared": mapped_once_shared,
    "loop": in_a_loop,
    "carry": carried,
    "branch": in_a_branch,
}


def derivatives(journey, f, same):
    with gg.Graph():
        y = gg.placeholder((3,))
        z = journey(f, y, y if same else gg.identity(y))
        d1 = gg.gradients(z, y)
        d2 = gg.gradients(d1, y, unconnected="zero")
        return gg.compile([y], [z, d1, d2], backend="numpy")(Y)


CASES = [
    (f"{name}, {f.__name__}", journey, f) for name, journey in JOURNEYS.items() for f in FUNCTIONS
]


@each(CASES, lambda name: name.partition(",")[0], sample=2)
def test_S42_one_tensor_for_two_inputs_is_as_two_equal_ones(journey, f):
    for one, two in zip(derivatives(journey, f, True), derivatives(journey, f, False)):
        np.testing.assert_allclose(one, two, rtol=1e-12)


@each([(f.__name__, f) for f in FUNCTIONS], lambda name: "file")
def test_S42_in_a_file(f, tmp_path_factory):
    journey = by_way_of(saved(tmp_path_factory.mktemp("file")))
    for one, two in zip(derivatives(journey, f, True), derivatives(journey, f, False)):
        np.testing.assert_allclose(one, two, rtol=1e-12)


def dys_of_both(site, d0, d1):
    rule, ds = lambda s, d: [2.0 * d * s.inputs[1], 3.0 * d * s.inputs[0]], [d0, d1]
    with gg.override_gradient(rule, inputs=ds) as region:
        u = d0 * d1
        region.declare(outputs=[u])
    return (u + gg.rules.checkpoint(lambda a, b: gg.sin(a) * b)(d0, d1)) * site.inputs[0]


@each([(w, w) for w in ("copy", "pickle", "vmap")], lambda name: "all")
def test_S42_one_gradient_for_two_outputs_is_as_two_equal_ones(way):
    """In a rule that travelled, with regions of its own around what it is given."""

    def twice(x):
        with gg.override_gradient(dys_of_both) as region:
            a, b = gg.sin(x), gg.cos(x)
            region.declare(outputs=[a, b])
        return a, b

    def found(same):
        with gg.Graph() as graph:
            x, d = gg.placeholder((3,), name="x"), gg.placeholder((3,), name="d")
            ys = gg.vmap(twice)(gg.expand_dims(x, 0)) if way == "vmap" else twice(x)
            ys = [gg.identity(y, name=n) for n, y in zip("ab", ys)]
        carry = {"copy": gg.Graph.copy, "pickle": lambda g: pickle.loads(pickle.dumps(g))}
        graph = carry.get(way, lambda g: g)(graph)
        with graph:
            x, d, *ys = [graph.tensor(f"{n}:0") for n in "xdab"]
            dy = gg.expand_dims(d, 0) if way == "vmap" else d
            dx = gg.gradients(ys, x, [dy, dy if same else gg.identity(dy)])
            return gg.evaluate([dx, gg.gradients(dx, d)], {x: Y, d: 2.0 * Y})

    np.testing.assert_allclose(found(True), found(False), rtol=1e-12)


def test_S42_a_carry_of_an_unrolled_run_is_a_slot_as_in_the_loop():
    """Where the run also reads the tensor that the loop begins with."""

    def summed(site, dy):
        return [dy * 0.3 for _ in site.inputs]

    def derivative(length, unroll):
        with gg.Graph():
            x = gg.placeholder(())

            def step(c, _):
                with gg.override_gradient(summed):
                    y = c * x
                return y, None

            y, _ = gg.scan(step, x, None, length=length, unroll=unroll)
            return gg.evaluate(gg.gradients(y, x), {x: 0.4})

    for length in (1, 2, 3):
        for unroll in (2, 3):
            np.testing.assert_allclose(derivative(length, unroll), derivative(length, 1))
