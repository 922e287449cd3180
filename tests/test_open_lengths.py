"""Programs on lengths that are known when they run: built once, told by what is fed, or refused."""

import pickle
import re

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.length import Length

from . import opens


@pytest.fixture(params=["numpy", "llvm"])
def backend(request):
    return request.param


def refused(f, error, said):
    with pytest.raises(error, match=re.escape(said)):
        f()


# --- built once, run at many lengths -----------------------------------------------------------


def test_counts_follow_the_lengths_that_are_fed(backend):
    x = gg.placeholder(("N", 3), name="x")
    N = x.shape[0]
    y = gg.sum(gg.concat([x, gg.zeros((N, 2))], axis=1)) / N + gg.sum(gg.arange(2 * N + 1))
    dx = gg.gradients(y, [x])[0]
    f = gg.compile(x, [y, dx, gg.ones(N // 2), gg.arange(N, 0, -1)], backend=backend)
    for n in (1, 2, 5, 2):
        value, gradient, halves, down = f(np.ones((n, 3)))
        assert value == 3 + n * (2 * n + 1)
        np.testing.assert_array_equal(gradient, np.full((n, 3), 1 / n))
        assert halves.shape == (n // 2,)
        np.testing.assert_array_equal(down, np.arange(n, 0, -1))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
@pytest.mark.parametrize(
    "bounds",
    [
        lambda N: slice(1, None),
        lambda N: slice(None, -1),
        lambda N: slice(-2, None),
        lambda N: slice(None, None, 2),
        lambda N: slice(None, None, -2),
        lambda N: slice(5, 1, -2),
        lambda N: slice(-3, -1),
        lambda N: slice(N // 2, None),
        lambda N: slice(1, N - 1),
        lambda N: slice(N - 2, N, 2),
        lambda N: slice(N // 2, None, -1),
        lambda N: slice(2 * N, 3 * N),
    ],
)
def test_slices_promise_the_shapes_that_come_out(bounds, n):
    """A bound that is a length counts from the front, from 0 on."""
    x = gg.placeholder(("N",), name="x")
    N = x.shape[0]
    y = x[bounds(N)]
    dx = gg.gradients(gg.sum(y * y), [x])[0]
    start, stop, step = bounds(n).start, bounds(n).stop, bounds(n).step
    key = bounds(Length("N"))
    start = max(start, 0) if isinstance(key.start, Length) else start
    stop = max(stop, 0) if isinstance(key.stop, Length) else stop
    values = np.arange(1.0, n + 1)
    found, gradient = gg.evaluate([y, dx], {x: values})
    np.testing.assert_array_equal(found, values[start:stop:step])
    (length,) = y.shape
    assert (length.at({"N": n}) if isinstance(length, Length) else length) == len(found)
    expected = np.zeros(n)
    expected[start:stop:step] = 2 * found
    np.testing.assert_array_equal(gradient, expected)


@pytest.mark.parametrize("bound", [slice("-M", None), slice(1, "-M"), slice("-(M//2)", None, 2)])
def test_a_bound_that_would_count_from_the_end_is_refused(bound):
    """As an int it would, as a length it would not: x[-M:] would be all of x."""
    x = gg.placeholder(("N", "M"), name="x")
    start, stop = (Length(b) if isinstance(b, str) else b for b in (bound.start, bound.stop))
    said = "counts from the front, and this one is never above 0"
    refused(lambda: x[start : stop : bound.step], gg.ShapeError, said)


def test_an_index_may_be_a_length():
    x = gg.placeholder(("N",), name="x")
    last = gg.evaluate(x[x.shape[0] - 1] + x[x.shape[0] // 2], {x: np.arange(5.0)})
    assert last == 4 + 2


def test_a_length_with_tensors_is_a_weak_integer():
    x = gg.placeholder(("N",), "float32", name="x")
    N = x.shape[0]
    tensors = [x * N, N * x, x / N, 1.0 / N, N * 0.5, N / 2, np.ones(3, "float32") * N, 2 * N - x]
    assert [t.dtype.name for t in tensors] == [
        *["float32"] * 3,
        *["float64"] * 3,
        *["float32"] * 2,
    ]
    values = gg.evaluate([gg.sum(t) for t in tensors], {x: np.array([1, 2], "float32")})
    np.testing.assert_allclose(values, [6, 6, 1.5, 0.5, 1, 1, 6, 5])
    assert (N + 1, N * 2, (N + 2) // 2) == ("N + 1", "2*N", "N//2 + 1")


def test_the_size_is_an_int_where_it_is_known():
    x = gg.placeholder(("N", 3), name="x")
    assert gg.size(x, 1) == 3
    assert type(gg.size(x, 1)) is int
    sizes = [gg.size(x), gg.size(x, 0), gg.size(x[x[:, 0] > 0.0], 0)]
    assert [t.type for t in sizes] == [gg.placeholder((), "int64").type] * 3
    assert gg.evaluate(sizes, {x: np.array([[1.0, 0, 0], [-1, 0, 0]])}) == [6, 2, 1]


def test_reshape_divides_exactly_or_is_checked_when_it_runs():
    x = gg.placeholder(("N", 6), name="x")
    assert gg.reshape(x, (-1, 3)).shape == ("2*N", 3)
    assert gg.reshape(x, (x.shape[0] * 2, -1)).shape == ("2*N", 3)
    y = gg.reshape(x, (-1, 4))
    assert gg.evaluate(y, {x: np.ones((2, 6))}).shape == (3, 4)
    refused(
        lambda: gg.evaluate(y, {x: np.ones((3, 6))}),
        gg.ShapeError,
        "float64[3, 6] cannot be reshaped to (-1, 4)",
    )


def test_lengths_of_none_are_never_equal_and_have_names():
    x, y = gg.placeholder((None,), name="x"), gg.placeholder((None,), name="y")
    assert (x.shape, y.shape) == (("x.0",), ("y.0",))
    assert x.shape[0] != y.shape[0]
    assert (x + x).shape == ("x.0",)
    assert (x + y).shape == (None,)
    assert gg.evaluate(x + y, {x: np.ones(3), y: np.ones(1)}).shape == (3,)


# --- travelling ----------------------------------------------------------------------------------


def averaged():
    with gg.Graph() as graph:
        x = gg.placeholder((None, "M"), name="x")
        rows, columns = x.shape
        gg.assume(rows >= 1)
        rest = x[1:]
        with gg.override_gradient(lambda site, dy: dy * site.inputs[0].shape[0]):
            y = gg.tanh(rest * gg.ones((rows - 1, columns)))
        y = gg.identity(gg.sum(y) / columns, name="y")
    return graph, x, y


def expected_of(value):
    n, m = value.shape
    y = np.tanh(value[1:]).sum() / m
    dx = np.zeros((n, m))
    dx[1:] = (n - 1) / m
    return y, dx


@pytest.mark.parametrize(
    "carried",
    [
        lambda graph: graph,
        lambda graph: graph.copy(),
        lambda graph: pickle.loads(pickle.dumps(graph)),
    ],
)
def test_S27_copies_keep_lengths_rules_and_what_is_assumed(carried, own_names):
    graph, _, _ = averaged()
    if carried(graph) is not graph:
        graph.regions[0].rule = "lengths/scaled"
        gg.register_gradient("lengths/scaled")(lambda site, dy: dy * site.inputs[0].shape[0])
    there = carried(graph)
    x, y = there.tensor("x:0"), there.tensor("y:0")
    with there:
        (dx,) = gg.gradients(y, [x])
    assert x.shape == ("x.0", "M")
    f = gg.compile(x, [y, dx])
    for shape in [(1, 2), (3, 2), (2, 5)]:
        value = np.linspace(-1, 1, shape[0] * shape[1]).reshape(shape)
        for a, b in zip(f(value), expected_of(value), strict=True):
            np.testing.assert_allclose(a, b)
    refused(lambda: f(np.ones((0, 2))), gg.ShapeError, "gg.assume(x.0 >= 1), stated at")


@pytest.mark.parametrize("shape", [(3, 4), ("K + 1", 4), ("A", "2*B")])
def test_an_import_puts_lengths_of_here_for_those_of_there(shape):
    graph, x, y = averaged()
    with gg.Graph():
        here = gg.placeholder(shape, name="here")
        made = gg.import_graph(graph, {x: gg.tanh(here)})[y]
        (dhere,) = gg.gradients(made, [here])
        value = np.linspace(-1, 1, 12).reshape(3, 4)
        found = gg.evaluate([made, dhere], {here: value})
    y, dx = expected_of(np.tanh(value))
    np.testing.assert_allclose(found[0], y)
    np.testing.assert_allclose(found[1], dx * (1 - np.tanh(value) ** 2))


def test_bodies_that_are_imported_make_what_lengths_of_here_make():
    with gg.Graph() as library:
        x = gg.placeholder(("N", "M"), name="x")
        rows = gg.scan(
            lambda c, r: (c, gg.concat([r, gg.zeros((x.shape[0],))])), gg.zeros(x.shape[1:]), x
        )[1]
        chosen = gg.cond(gg.sum(x) > 0, lambda: x[:-1], lambda: -x[1:])
    with gg.Graph():
        here = gg.placeholder(("2*P + 1", 3), name="here")
        found = gg.import_graph(library, {x: here})
        assert found[rows].shape == ("2*P + 1", "2*P + 4")
        assert found[chosen].shape == ("2*P", 3)
        (body,) = found[rows].node.op.bodies
        assert [t.shape for t in body.outputs] == [(3,), ("2*P + 4",)]


@pytest.mark.parametrize("where", ["graph", "body"])
def test_a_rule_that_closes_over_a_length_means_that_of_home(where):
    """N of the library is M here, and a rule that is called here says N of the library."""
    with gg.Graph() as library:
        x = gg.placeholder(("N", "M"), name="x")
        N = x.shape[0]

        def times_rows(site, dy):
            return dy * N

        def marked(t):
            with gg.override_gradient(times_rows):
                return gg.sin(t)

        y = marked(x)
        if where == "body":
            y = gg.cond(gg.size(x, 1) > 0, lambda: marked(x), lambda: x)
    with gg.Graph():
        here = gg.placeholder(("M", "N"), name="here")
        found = gg.import_graph(library, {x: here})[y]
        (dx,) = gg.gradients(gg.sum(found), [here])
        np.testing.assert_array_equal(gg.evaluate(dx, {here: np.zeros((2, 3))}), np.full((2, 3), 2))


def test_names_of_there_are_no_names_of_here():
    with gg.Graph() as library:
        x = gg.placeholder(("M",), name="x")
        y = gg.placeholder(("max(N, M)", "N"), name="y")
        z = gg.concat([x, gg.zeros((y.shape[1] // 2,))])
    with gg.Graph():
        here = gg.placeholder(("N",), name="here"), gg.placeholder(("max(N, M)", "M"), name="more")
        found = gg.import_graph(library, dict(zip((x, y), here)))
        assert found[z].shape == ("M//2 + N",)


def test_an_import_of_what_is_assumed_otherwise_is_refused():
    graph, x, _ = averaged()
    with gg.Graph():
        refused(
            lambda: gg.import_graph(graph, {x: np.ones((0, 2))}),
            gg.ShapeError,
            "gg.assume(x.0 >= 1), stated at",
        )


def test_two_imports_have_lengths_of_their_own():
    graph, x, y = averaged()
    with gg.Graph():
        one, other = gg.import_graph(graph), gg.import_graph(graph)
        xs = [one[x], other[x]]
        assert [t.shape[0] for t in xs] == ["x.0", "x_1.0"]
        feeds = {xs[0]: np.ones((3, 2)), xs[1]: np.ones((2, 2))}
        values = gg.evaluate([one[y], other[y]], feeds)
    np.testing.assert_allclose(values, [2 * np.tanh(1), np.tanh(1)])


def test_bodies_read_lengths_of_the_graph_around(backend):
    x = gg.placeholder(("N", 2), name="x")
    N = x.shape[0]

    def body(carry, row):
        return carry + gg.sum(row) * gg.arange(N, dtype="float64"), gg.ones(N)

    last, rows = gg.scan(body, gg.zeros(N), x)
    chosen = gg.cond(gg.size(x, 0) > 2, lambda: gg.sum(last), lambda: gg.sum(gg.ones(N)))
    f = gg.compile(x, [last, chosen, gg.gradients(chosen, [x])[0], rows], backend=backend)
    for n in (1, 3):
        found, total, dx, rows = f(np.ones((n, 2)))
        np.testing.assert_array_equal(found, 2 * n * np.arange(n))
        assert total == (2 * n * np.arange(n).sum() if n > 2 else n)
        np.testing.assert_array_equal(dx, np.full((n, 2), np.arange(n).sum() if n > 2 else 0.0))
        assert rows.shape == (n, n)


def test_a_batch_of_what_computes_with_lengths(backend):
    def mean(row):
        return gg.sum(row) / row.shape[0] + gg.sum(gg.ones((row.shape[0], 2)))

    xs = gg.placeholder(("B", "N"), name="xs")
    f = gg.compile(xs, gg.vmap(mean)(xs), backend=backend)
    np.testing.assert_array_equal(f(np.ones((2, 5))), [11, 11])
    np.testing.assert_array_equal(f(np.ones((3, 1))), [3, 3, 3])


# --- facts ---------------------------------------------------------------------------------------


def test_what_is_assumed_decides_and_is_checked():
    x = gg.placeholder(("N",), name="x")
    N = x.shape[0]
    assert x[2:].shape == ("max(N - 2, 0)",)
    gg.assume(N >= 3, N < 10)
    assert x[2:].shape == ("N - 2",)
    assert (N > 2, N > 10, N - 3 >= 0, bool(N)) == (True, False, True, True)
    refused(lambda: bool(N > 5), TypeError, "whether N > 5 holds is only known at run time")
    f = gg.compile(x, gg.sum(x[2:]))
    assert f(np.ones(3)) == 1
    refused(lambda: f(np.ones(2)), gg.ShapeError, "gg.assume(N >= 3), stated at")
    refused(lambda: f(np.ones(10)), gg.ShapeError, "does not hold: N is 10")
    with gg.Graph():
        assert gg.placeholder(("N",))[2:].shape == ("max(N - 2, 0)",)


def test_what_states_nothing_or_never_holds_is_refused():
    N = gg.placeholder(("N",)).shape[0]
    gg.assume(N >= 0, True)
    refused(lambda: gg.assume(N < 0), gg.ShapeError, "no lengths satisfy this")
    refused(lambda: gg.assume(3), TypeError, "takes comparisons of lengths, as N >= 2, got 3")
    assert gg.default_graph().assumptions == []


# --- errors --------------------------------------------------------------------------------------


def test_a_length_is_no_int():
    N = gg.placeholder(("N",)).shape[0]
    for f in (int, float, range, lambda n: [1, 2][:n], np.asarray, lambda n: np.prod((n, 3))):
        refused(lambda f=f: f(N), TypeError, "the length N is open")
    refused(lambda: bool(N), TypeError, "whether it is 0 is only known at run time")
    refused(lambda: bool(N > 3), TypeError, "state gg.assume(N > 3) if it always does")
    refused(lambda: N // 0, ZeroDivisionError, "the length N divided by 0")


def test_lengths_that_nothing_tells_are_refused():
    x = gg.placeholder(("N",), name="x")
    refused(
        lambda: gg.compile([], gg.zeros(x.shape[0])),
        gg.GraphError,
        "needs the length 'N', which no input determines (none)",
    )
    refused(lambda: gg.placeholder(("K//2",)), gg.ShapeError, "K cannot be determined from it")
    assert gg.placeholder(("N//2", "N*M")).shape == ("N//2", "M*N")
    refused(lambda: gg.placeholder((-x.shape[0] - 1,)), gg.ShapeError, "a length is never negative")


def test_a_length_that_would_be_negative_is_refused_when_it_runs():
    x = gg.placeholder(("N",), name="x")
    f = gg.compile(x, gg.sum(x) + gg.sum(gg.ones((x.shape[0] - 2, 3))))
    assert f(np.ones(3)) == 6
    refused(
        lambda: f(np.ones(1)),
        gg.ShapeError,
        "a length is never negative, got [-1, 3]",
    )


def test_a_length_that_only_a_product_with_0_tells_is_refused_when_it_runs(backend):
    x = gg.placeholder(("N*M", "N"), name="x")
    f = gg.compile(x, gg.zeros(gg.Length("M")) + gg.sum(x), backend=backend)
    np.testing.assert_array_equal(f(np.ones((6, 2))), [12.0, 12.0, 12.0])
    refused(lambda: f(np.ones((0, 0))), gg.ShapeError, "the length 'M' is needed and cannot be")
    refused(lambda: f(np.ones((3, 0))), gg.ShapeError, "'M*N' is 3 in")


def test_lengths_that_contradict_are_refused_with_both_places():
    x, y = gg.placeholder(("N",), name="x"), gg.placeholder(("2*N + 1",), name="y")
    f = gg.compile([x, y], gg.sum(x) * gg.sum(y))
    assert f(np.ones(2), np.ones(5)) == 10
    said = r"length '2\*N \+ 1' is 6 in 'y' .*built at .*:\d+\), and 5 where 'N' is 2 in 'x' .*"
    with pytest.raises(gg.ShapeError, match=said):
        f(np.ones(2), np.ones(6))
    z = gg.placeholder(("2*K",), name="z")
    refused(
        lambda: gg.evaluate(z, {z: np.ones(3)}),
        gg.ShapeError,
        "length '2*K' is 3 in 'z'",
    )
    joined = gg.concat([y[None], gg.ones((1, x.shape[0] + 5))], 0)  # where N is 4 they are equal
    assert gg.evaluate(joined, {x: [1.0] * 4, y: [1.0] * 9}).shape == (2, 9)
    refused(
        lambda: gg.evaluate(joined, {x: [1.0], y: [1.0] * 3}),
        gg.ShapeError,
        "concat of float64[1, 3] and float64[1, 6]: lengths 3 and 6 differ",
    )
    refused(
        lambda: gg.concat([x[None], gg.ones((1, x.shape[0] + 1))]),
        gg.ShapeError,
        "concat of float64[1, N] and float64[1, N + 1]: lengths N and N + 1 differ",
    )


def halves_twice(x, axis=0):
    """As long as x where that is even, one longer where it is odd."""
    half = x[(slice(None),) * axis + (slice(None, None, 2),)]
    return gg.concat([half, half], axis=axis)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("axis", [0, 1])
def test_lengths_of_the_same_names_count_as_equal_and_a_run_checks_it(axis, backend):
    shape = ("N", 3) if axis == 0 else ("M", "N")
    with gg.Graph():
        x = gg.placeholder(shape, name="x")
        y = x + halves_twice(x, axis)
        assert y.shape == shape
        assert gg.gradients(gg.sum(y * y), x).shape == shape
        run = gg.compile(x, [y, gg.gradients(gg.sum(y), x)], backend=backend)

    def ones(n):
        return np.ones((n, 3) if axis == 0 else (2, n))

    for n in (0, 2, 4):
        made, dx = run(ones(n))
        np.testing.assert_array_equal(made, 2 * ones(n))
        assert dx.shape == made.shape
    for n in (3, 1):
        with pytest.raises(gg.ShapeError, match=f"where N is {n}, these are {n} and {n + 1}") as no:
            run(ones(n))
        assert "Concat" in str(no.value.__notes__)
        assert ", of float64[" in str(no.value.__notes__)


@pytest.mark.parametrize("name", opens.EQUATED)
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_what_counts_two_lengths_as_equal_is_checked_by_a_run(name, backend):
    with gg.Graph():
        x = gg.placeholder(("N", 3), name="x")
        run = gg.compile(x, opens.EQUATED[name](x), backend=backend)
    run(np.ones((2, 3)))
    for n in (1, 3):
        with pytest.raises(gg.ShapeError, match=r"'N' and '2\*\(\(N \+ 1\)//2\)' count as equal"):
            run(np.ones((n, 3)))


@pytest.mark.parametrize("name", opens.BROADCAST)
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_length_of_one_is_broadcast(name, backend):
    with gg.Graph():
        x = gg.placeholder(("N", 3), name="x")
        run = gg.compile(x, opens.BROADCAST[name](x), backend=backend)
    for n in (1, 2, 4):
        given = np.arange(3.0 * n).reshape(n, 3)
        with gg.Graph():
            wanted = gg.evaluate(opens.BROADCAST[name](gg.constant(given)))
        np.testing.assert_allclose(run(given), wanted, rtol=1e-12)


def test_a_length_of_one_or_none_is_checked():
    with gg.Graph():
        x = gg.placeholder(("M", "N"), name="x")
        few = gg.sum(x[:1], axis=1) * gg.ones(x.shape[0] + 1)[: gg.Length.min(x.shape[0], 1)]
        made = few * gg.ones(x.shape[0] * 2 + x.shape[1] % 2 + 1)
        run = gg.compile(x, made)
    assert run(np.ones((2, 4))).shape == (5,)
    with pytest.raises(gg.ShapeError, match="count as equal"):
        run(np.ones((0, 4)))


def test_lengths_of_other_names_broadcast():
    with gg.Graph():
        x, y = gg.placeholder(("N",)), gg.placeholder(("M",))
        z = x + y
        assert z.shape == (None,)
        run = gg.compile([x, y], z)
    assert run(np.ones(1), np.ones(3)).shape == (3,)
    assert run(np.ones(3), np.ones(3)).shape == (3,)
    with pytest.raises(gg.ShapeError, match="do not broadcast"):
        run(np.ones(2), np.ones(3))
