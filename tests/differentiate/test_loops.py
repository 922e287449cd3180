"""A loop means what its runs mean, built one after the other."""

import pickle
from contextlib import nullcontext

import numpy as np
import pytest

import graphgrad as gg

from ..each import every
from .helpers import value, values

RNG = np.random.default_rng(5)
X, W, H = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 3)), RNG.normal(size=3)
STEPS = len(X)


# --- programs: f(scan, x, w, h) -> tensors, where scan is gg.scan or the loop in Python -----------


def unrolled(f, init, xs=None, length=None, reverse=False, **_):
    """gg.scan, run by run."""
    count = length if xs is None else rows(xs)
    carry, made = init, [None] * count
    for at in reversed(range(count)) if reverse else range(count):
        carry, made[at] = f(carry, None if xs is None else take(xs, at))
    if not made or made[0] is None:
        return carry, None
    if isinstance(made[0], tuple):
        return carry, tuple(gg.stack(list(column)) for column in zip(*made, strict=True))
    return carry, gg.stack(made)


def rows(xs):
    return (xs[0] if isinstance(xs, tuple) else xs).shape[0]


def take(xs, at):
    return tuple(x[at] for x in xs) if isinstance(xs, tuple) else xs[at]


def rnn(scan, x, w, h):
    def run(h, row):
        h = gg.tanh(h @ w + row)
        return h, gg.sin(h) * row

    return scan(run, h, x)


def many_carries(scan, x, w, h):
    """A number that counts, a carry that nobody changes, one that is not read."""

    def run(carry, row):
        count, held, s, unread = carry
        s = s * held + row * gg.cast(count, "float64")
        return (count + 1, held, s, unread * 2.0), (s, count)

    (_, _, s, _), (ss, counts) = scan(run, (0, h, h * w[0], h), x)
    return s, ss * gg.expand_dims(gg.cast(counts, "float64"), 1)


def no_carry(scan, x, w, h):
    return scan(lambda _, row: ((), gg.exp(row * h)), (), x)[1] @ w


def no_slices(scan, x, w, h):
    return scan(lambda s, _: (gg.sin(s @ w) + x[0], s), h, length=3)


def backwards(scan, x, w, h):
    return scan(lambda s, row: (gg.tanh(s * row) + h, s @ w), h, x, reverse=True)


def two_stacks(scan, x, w, h):
    return scan(lambda s, rows: (s * rows[0] + rows[1], None), h, (x, x @ w))[0]


def nested(scan, x, w, h):
    def outer(s, row):
        inner, made = scan(lambda t, v: (gg.tanh(t + v) * row[0], t * row[1]), s, x)
        return inner @ w, gg.sum(made)

    return scan(outer, h, x)


def choice_inside(scan, x, w, h):
    def run(s, row):
        s = gg.cond(gg.sum(row) > 0, lambda: gg.tanh(s @ w) + row, lambda: s * row)
        return s, s

    return scan(run, h, x)


def inside_a_choice(scan, x, w, h):
    return gg.cond(gg.sum(h) < 99.0, lambda: rnn(scan, x, w, h), lambda: (h, x))


def region_inside(scan, x, w, h):
    def run(s, row):
        with gg.override_gradient(lambda site, dy: 2.0 * dy * site.outputs[0] + row[0]):
            y = gg.tanh(s)
        return y @ w + row, y

    return scan(run, h, x)


def linear_rule_inside(scan, x, w, h):
    def run(s, row):
        with gg.override_gradient(lambda site, dy: 3.0 * site.default(dy)[0]):
            y = gg.sin(s)
        return y @ w + row, y

    return scan(run, h, x)


def region_around(scan, x, w, h):
    with gg.override_gradient(lambda site, *dys: [2.0 * d for d in site.default(*dys)]) as region:
        last, made = rnn(scan, x, w, h)
        region.declare(outputs=[last, made])
    return last, made


PROGRAMS = [
    rnn,
    many_carries,
    no_carry,
    no_slices,
    backwards,
    two_stacks,
    nested,
    choice_inside,
    inside_a_choice,
    linear_rule_inside,
    region_around,
]
NOT_LINEAR = [region_inside]


def flat(found):
    """The tensors in nested lists and tuples."""
    if isinstance(found, tuple | list):
        return [t for each in found for t in flat(each)]
    return [] if found is None else [found]


def loss(found):
    return gg.add(*[gg.sum(gg.sin(t) * t) for t in [*flat(found), gg.zeros(())][:2]])


def both(program, transform, backend="numpy"):
    """What a transform makes of the loop, and of its runs one after the other."""
    made = []
    for scan in (gg.scan, unrolled):
        x, w, h = gg.placeholder(X.shape), gg.placeholder(W.shape), gg.placeholder(H.shape)
        found = transform(lambda x, w, h, scan=scan: program(scan, x, w, h), x, w, h)
        run = gg.compile([x, w, h], [*flat(tuple(found))], backend=backend)
        made.append(run(X, W, H))
    return made


def check(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def gradients_of(order):
    def transform(f, x, w, h):
        y = loss(f(x, w, h))
        for _ in range(order):
            found = gg.gradients(y, [x, w, h], unconnected="zero")
            y = gg.sum(found[0] ** 2) + gg.sum(gg.sin(found[1])) + gg.sum(found[2] * found[2])
        return found

    return transform


def forward(f, x, w, h):
    return flat(gg.jvp(flat(f(x, w, h)), [x, w, h], [x * 2.0, w + 1.0, h]))


def second(f, x, w, h):
    return gg.hvp(loss(f(x, w, h)), [x, w, h], [x * 2.0, w + 1.0, h])


def batched(f, x, w, h):
    return flat(gg.vmap(f, in_axes=(None, None, 0))(x, w, gg.stack([h, h + 1.0])))


def batched_rows(f, x, w, h):
    return flat(gg.vmap(f, in_axes=(0, None, None))(gg.stack([x, x * 0.5]), w, h))


def gradients_of_batched(f, x, w, h):
    y = gg.vmap(lambda a, b: loss(f(a, w, b)))(gg.stack([x, x * 0.5]), gg.stack([h, h + 1.0]))
    return gg.gradients(gg.sum(y * y), [x, w, h], unconnected="zero")


def batched_gradients(f, x, w, h):
    def one(h):
        return gg.gradients(loss(f(x, w, h)), [w, h], unconnected="zero")

    found = gg.vmap(one)(gg.stack([h, h + 1.0]))
    return [*found, *gg.gradients(gg.sum(found[0] ** 2), [x, h], unconnected="zero")]


TRANSFORMS = [
    gradients_of(1),
    gradients_of(2),
    forward,
    second,
    batched,
    batched_rows,
    gradients_of_batched,
    batched_gradients,
]
NAMES = ["first", "second order", *(t.__name__ for t in TRANSFORMS[2:])]


@pytest.mark.parametrize("program", every(3, PROGRAMS))
@pytest.mark.parametrize("transform", TRANSFORMS, ids=NAMES)
def test_a_loop_is_its_runs_one_after_the_other(program, transform):
    check(*both(program, transform))


@pytest.mark.parametrize("program", NOT_LINEAR)
@pytest.mark.parametrize("transform", [TRANSFORMS[0], batched], ids=["first", "batched"])
def test_a_rule_that_is_not_linear_is_called_for_each_run(program, transform):
    check(*both(program, transform))


@pytest.mark.parametrize("program", [rnn, nested, many_carries])
def test_third_order(program):
    check(*both(program, gradients_of(3)))


@pytest.mark.parametrize("backend", ["llvm", "jax"])
@pytest.mark.parametrize("program", [rnn, many_carries, nested, choice_inside, backwards])
def test_backends_agree(program, backend):
    if backend == "jax":
        pytest.importorskip("jax")
    check(*both(program, gradients_of(2), backend))


# --- lengths -------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 5])
def test_unknown_lengths(count):
    x, h = gg.placeholder((None, 3)), gg.placeholder((3,))
    last, made = gg.scan(lambda s, row: (gg.tanh(s + row), s * row), h, x)
    found = [last, made, *gg.gradients(gg.sum(last) + gg.sum(made * made), [x, h])]
    feed = {x: RNG.normal(size=(count, 3)), h: H}
    s, rows, want = H, [], feed[x]
    for row in want:
        rows.append(s * row)
        s = np.tanh(s + row)
    last, made, dx, dh = values(found, feed)
    np.testing.assert_allclose(last, s)
    np.testing.assert_allclose(made, np.reshape(rows, (count, 3)))
    assert (dx.shape, dh.shape) == ((count, 3), (3,))
    if not count:
        assert dh.tolist() == [1, 1, 1]


@pytest.mark.parametrize("unroll", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("reverse", [False, True])
def test_unrolling_changes_nothing(unroll, reverse):
    x, h = gg.constant(X), gg.constant(H)

    def run(s, row):
        return gg.tanh(s + row), {"a": s * row, "b": row[0]}

    one, other = (gg.scan(run, h, x, reverse=reverse, unroll=k) for k in (1, unroll))
    for a, b in zip(values([one[0], *one[1].values()]), values([other[0], *other[1].values()])):
        np.testing.assert_allclose(a, b)


# --- while, fori, map, switch --------------------------------------------------------------------


def doubled(a, limit, **how):
    return gg.while_loop(lambda c: c < limit, lambda c: c * a + gg.sin(c), a * 0.5, **how)


def doubled_by_hand(a, limit):
    c = a * 0.5
    while float(gg.evaluate(c)) < limit:
        c = c * a + gg.sin(c)
    return c


@pytest.mark.parametrize("how", [{}, {"max_trips": 12}], ids=["unknown", "bounded"])
@pytest.mark.parametrize("limit", [0.1, 30.0])
def test_while_gives_gradients_of_every_order(how, limit):
    a = gg.constant(1.7)
    found = [doubled(a, limit, **how), doubled_by_hand(a, limit)]
    for _ in range(3):
        one, other = values(found)
        np.testing.assert_allclose(one, other, rtol=1e-9)
        found = [gg.gradients(y, a, unconnected="zero") for y in found]


@pytest.mark.parametrize("how", [{}, {"max_trips": 12}], ids=["unknown", "bounded"])
def test_S27_in_a_batch_every_example_ends_when_it_ends(how):
    a = gg.constant([1.7, 3.0, 60.0, 90.0])  # the last does not run at all
    alone = [doubled_by_hand(a[i], 40.0) for i in range(4)]
    y, z = gg.vmap(lambda a: doubled(a, 40.0, **how))(a), gg.stack(alone)
    dy = gg.vmap(lambda a: gg.gradients(doubled(a, 40.0, **how), a))(a)
    dz = gg.gradients(gg.sum(z), a)
    pairs = [(y, z), (gg.gradients(gg.sum(y), a), dz), (dy, dz)]
    pairs.append(tuple(gg.gradients(gg.sum(d * d), a) for d in (dy, dz)))
    for one, other in pairs:
        np.testing.assert_allclose(*values([one, other]), rtol=1e-9)


def test_an_example_that_has_ended_may_not_spoil_the_others():
    """Its body would be infinite by then."""
    a = gg.constant([0.0, 1.0])

    def f(a):
        return gg.while_loop(lambda c: c[0] < a, lambda c: (c[0] + 1.0, gg.sqrt(c[1])), (0.0, a))[1]

    assert values([gg.gradients(gg.sum(gg.vmap(f)(a)), a)])[0].tolist() == [1, 0.5]


@pytest.mark.parametrize("bounds", [(0, 3), (2, 5), (4, 4), (3, 1)])
@pytest.mark.parametrize("known", [True, False])
def test_fori_loop(bounds, known):
    lo, hi = bounds if known else (gg.constant(b) for b in bounds)
    x = gg.constant(1.5)
    y = gg.fori_loop(lo, hi, lambda i, c: c * x + gg.cast(i, "float64"), x)
    z = x
    for i in range(*bounds):
        z = z * x + i
    for _ in range(3):
        assert value(y) == pytest.approx(value(z))
        y, z = (gg.gradients(t, x, unconnected="zero") for t in (y, z))


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 7])
def test_switch_clamps_its_index(index):
    x, i = gg.constant(0.7), gg.placeholder((), "int64")
    branches = [gg.sin, gg.square, gg.exp]
    want = branches[min(max(index, 0), 2)](x)
    found = gg.switch(i, branches, x)
    pairs = [(found, want), (gg.gradients(found, x), gg.gradients(want, x))]
    for one, other in pairs:
        assert value(one, {i: index}) == pytest.approx(value(other))
    assert value(gg.switch(index, branches, x)) == pytest.approx(value(want))


# --- rules ---------------------------------------------------------------------------------------


def test_S01_a_region_that_carries_enter_and_rows_leave_counts_in_every_run():
    x = gg.constant([1.0, 2.0, 3.0])

    def run(s, row):
        with gg.override_gradient("loops.half"):
            s = s * row
        return s, s

    with gg.temporary_gradient("loops.half", lambda site, dy: (0.5 * dy, dy)):
        made = gg.scan(run, 1.0, x)[1]
        dx = gg.gradients(made[-1], x)
    assert value(dx).tolist() == [0.25, 0.5, 1.0]


def test_overrides_reach_into_bodies():
    x = gg.constant([1.0, 2.0])
    y = gg.scan(lambda s, row: (gg.sin(s) + row, None), 0.0, x)[0]
    dx = gg.gradients(y, x, overrides={"Sin": lambda site, dy: 10.0 * dy})
    assert value(dx).tolist() == [10, 1]


def test_truncated_backpropagation_is_a_region_around_a_carry():
    x = gg.constant([1.0, 1.0, 1.0, 1.0])

    def run(carry, row):
        i, s = carry
        cut = gg.cond(i % 2 == 0, lambda: gg.stop_gradient(s), lambda: gg.identity(s))
        return (i + 1, cut * 0.5 + row), None

    y = gg.scan(run, (0, 0.0), x)[0][1]
    assert value(gg.gradients(y, x)).tolist() == [0, 0, 0.5, 1]


@pytest.mark.parametrize("way", ["copy", "pickle"])
def test_loops_travel(way):
    g = gg.Graph()
    with g.as_default():
        x = gg.placeholder((3,), name="x")
        with gg.override_gradient(lambda site, dy: [2.0 * d for d in site.default(dy)]):
            s = gg.scan(lambda s, row: (s * row, None), 1.0, x)[0]
        gg.identity(s, name="s")
    new = g.copy() if way == "copy" else pickle.loads(pickle.dumps(g))
    found = [gg.gradients(graph.tensor("s:0"), graph.tensor("x:0")) for graph in (g, new)]
    feeds = [{graph.tensor("x:0"): [1.0, 2.0, 3.0]} for graph in (g, new)]
    one, other = (value(*pair) for pair in zip(found, feeds, strict=True))
    assert one.tolist() == other.tolist()


# --- what is refused -----------------------------------------------------------------------------


def half(s, row):
    return s * 0.5, row


X3 = np.ones((3, 2))


@pytest.mark.parametrize(
    ("error", "call", "words"),
    [
        (gg.DTypeError, lambda: gg.scan(half, 1, X3), "carry init.*int64.*float64"),
        (
            gg.ShapeError,
            lambda: gg.scan(lambda s, r: (s + r, None), 0.0, X3),
            r"carry init.*\[2\]",
        ),
        (gg.ShapeError, lambda: gg.scan(lambda s, r: ((s, s), None), 0.0, X3), "structure"),
        (gg.ShapeError, lambda: gg.scan(half, 1.0), "neither xs nor a length"),
        (gg.ShapeError, lambda: gg.scan(half, 1.0, X3, length=2), "same number of rows"),
        (gg.ShapeError, lambda: gg.scan(half, 1.0, (X3, X3[:2])), "same number of rows"),
        (gg.ShapeError, lambda: gg.scan(half, 1.0, 3.0), "goes over rows"),
        (TypeError, lambda: gg.scan(lambda s, r: s, 1.0, X3), "returns"),
        (TypeError, lambda: gg.scan(3, 1.0, X3), "takes a function"),
        *[
            (TypeError, lambda no=no: gg.scan(half, 1.0, X3, reverse=no), "reverse is True or")
            for no in ("no", 0, None, [])
        ],
        (gg.ShapeError, lambda: gg.scan(half, 1.0, length=1 << 63), r"2\*\*63"),
        (ValueError, lambda: gg.while_loop(abs, abs, 1.0, max_trips=1 << 63), r"2\*\*63"),
        (gg.ShapeError, lambda: gg.map(lambda r: None, X3), "returns None"),
        (TypeError, lambda: gg.switch(0, None, 1.0), "list of functions"),
        (TypeError, lambda: gg.scan(half, 1.0, X3, unroll=1.5), "unroll"),
        (ValueError, lambda: gg.scan(half, 1.0, X3, unroll=0), "unroll"),
        (gg.StateError, lambda: gg.map(lambda r: gg.placeholder(()), X3), r"body of map\(\)"),
        (gg.StateError, lambda: gg.map(lambda r: gg.variable(1.0), X3), r"body of map\(\)"),
        (gg.ShapeError, lambda: gg.map(abs, 3.0), r"map\(\) at .*goes over rows"),
        (gg.ShapeError, lambda: gg.map(abs, (X3, X3[:2])), r"map\(\) at .*same number of rows"),
        (gg.ShapeError, lambda: gg.map(abs, ()), r"map\(\) at .*no xs"),
        (gg.ShapeError, lambda: gg.map(abs, None), r"map\(\) at .*no xs"),
        (gg.DTypeError, lambda: gg.while_loop(lambda c: c, lambda c: c, 1.0), "single bool"),
        (gg.ShapeError, lambda: gg.while_loop(lambda c: c < 1, lambda c: c, X3), "single bool"),
        (gg.ShapeError, lambda: gg.while_loop(lambda c: True, lambda c: c, ()), "no carry"),
        (ValueError, lambda: gg.while_loop(lambda c: c < 1, lambda c: c, 1.0, -1), "max_trips"),
        (gg.DTypeError, lambda: gg.while_loop(lambda c: (c < 1,), abs, 1.0), "single bool"),
        (gg.DTypeError, lambda: gg.while_loop(lambda c: None, abs, 1.0), "bool, got None"),
        (gg.DTypeError, lambda: gg.switch(1.5, [gg.sin, gg.cos], 1.0), "integer"),
        (TypeError, lambda: gg.switch(1, gg.sin, 1.0), r"switch\(\) takes a list"),
        (
            TypeError,
            lambda: gg.switch(1, [gg.sin, 3], 1.0),
            r"of switch\(\) are functions",
        ),
        (gg.ShapeError, lambda: gg.switch(gg.constant([1]), [gg.sin], 1.0), "one integer"),
        (gg.ShapeError, lambda: gg.switch(1, []), "needs a branch"),
        (TypeError, lambda: gg.fori_loop(0, 1.5, lambda i, c: c, 1.0), "int"),
        (gg.DTypeError, lambda: gg.fori_loop(0, 3, abs, None), r"fori_loop\(\) at .* with None;"),
    ],
)
def test_what_is_no_loop_is_an_error_that_says_so(error, call, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("hi", [3, "tensor"])
@pytest.mark.parametrize(
    ("error", "body", "words"),
    [
        (gg.DTypeError, lambda i, c: c > 0.0, r"carry init of .* is float64\[\] and becomes bool"),
        (gg.ShapeError, lambda i, c: gg.stack([c]), r"carry init of .* becomes float64\[1\]"),
        (
            gg.ShapeError,
            lambda i, c: [c],
            r"structure than it takes: \[<\w+:0.*>\] for 1.0$",
        ),
        (gg.ShapeError, lambda i, c: None, "returns None as its carry"),
        (gg.StateError, lambda i, c: gg.variable(1.0), "a Variable inside the body of "),
    ],
)
def test_errors_of_a_counted_loop_are_about_the_carry_that_was_given(hi, error, body, words):
    hi = gg.constant(3) if hi == "tensor" else hi
    with pytest.raises(error, match=words) as caught:
        gg.fori_loop(0, hi, body, 1.0)
    assert "fori_loop()" in str(caught.value)


@pytest.mark.parametrize(
    ("error", "other", "words"),
    [
        (gg.ShapeError, lambda x: (x, x), "must return the same structure"),
        (gg.ShapeError, lambda x: gg.stack([x]), "reshape one"),
        (gg.DTypeError, lambda x: 0, "cast one"),
    ],
)
def test_errors_of_a_switch_name_the_branches(error, other, words):
    with pytest.raises(error, match=rf"branches 2 and 3 of switch\(\) at test_loops.*{words}"):
        gg.switch(gg.constant(1), [gg.sin, gg.cos, gg.exp, other], gg.constant(1.0))
    with pytest.raises(gg.StateError, match=r"a branch of switch\(\)"):
        gg.switch(gg.constant(1), [gg.sin, lambda x: gg.variable(1.0)], gg.constant(1.0))


def test_rows_that_turn_out_to_be_of_two_numbers():
    x, y = gg.placeholder((None, 2)), gg.placeholder((None, 2))
    f = gg.compile([x, y], [gg.map(lambda r: r[0] + r[1], (x, y))])
    with pytest.raises(
        gg.ShapeError, match=r"needs the same number of rows in every array, got \[3, 2\]"
    ):
        f(X3, X3[:2])


def test_assign_in_a_body():
    v = gg.variable(1.0)
    with pytest.raises(gg.StateError, match=r"assign.*body of map"):
        gg.map(lambda row: gg.assign(v, v + 1.0), X3)


@pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])
def test_more_runs_than_there_may_be(backend):
    if backend == "jax":
        pytest.importorskip("jax")
    for most in (3, 0):
        y = gg.while_loop(lambda c: c < 100.0, lambda c: c * 2.0, 1.0, max_trips=most)
        with pytest.raises(Exception, match=f"still true after max_trips={most} runs"):
            gg.compile([], [y], backend=backend)()


def test_what_nobody_reads_is_not_kept_whatever_is_optimised():
    """Or 8 GB were taken here."""
    y = gg.while_loop(lambda c: c < 100.0, lambda c: c * 2.0, 1.0, max_trips=10**9)
    assert gg.evaluate(y) == 128.0


def test_jax_needs_to_know_how_much_is_kept():
    pytest.importorskip("jax")
    x = gg.placeholder(())
    y = gg.while_loop(lambda c: c < 100.0, lambda c: c * x, 1.0)
    assert gg.compile([x], [y], backend="jax")(2.0) == [128]
    with pytest.raises(gg.ExecutionError, match="max_trips"):
        gg.compile([x], [gg.gradients(y, x)], backend="jax")(2.0)


# --- size ----------------------------------------------------------------------------------------


def test_the_graph_is_as_large_for_any_number_of_runs():
    sizes = []
    for count in (3, 3000):
        with gg.Graph().as_default() as g:
            x = gg.placeholder((count, 2))
            y = gg.sum(gg.scan(lambda s, row: (gg.tanh(s * row), s), np.ones(2), x)[1])
            gg.gradients(gg.sum(gg.gradients(y, x) ** 2), x)
            sizes.append(len(g.nodes))
    assert sizes[0] == sizes[1]


def test_what_a_loop_makes_for_nobody_is_not_made():
    x = gg.placeholder((5, 2))

    def run(carry, row):
        a, b, c = carry
        return (a + row, b * a, gg.sin(c)), gg.exp(row)

    first = np.ones(2)
    y = gg.scan(run, (first, first, first), x)[0][0]
    f = gg.compile([x], [y])
    (loop,) = [n for n in f.program.nodes if n.type == "Scan"]
    (body,) = loop.op.bodies
    assert [n.type for n in body.nodes] == ["Add"]
    assert len(loop.outputs) == 1
    np.testing.assert_allclose(f(X3[[0, 0, 0, 0, 0]])[0], [6, 6])


@pytest.mark.parametrize("unroll", [1, 2])
def test_of_no_run_the_stacks_are_empty_however_it_is_unrolled(unroll):
    with gg.Graph():
        x = gg.placeholder((0, 3), name="x")
        last, ys = gg.scan(lambda s, row: (s + 1.0, {"y": row * s}), 2.0, x, unroll=unroll)
        dx = gg.gradients(gg.sum(ys["y"]) + last, x, unconnected="zero")
        found = gg.compile(x, [last, ys, dx])(np.zeros((0, 3)))
    assert found[0] == 2.0
    assert found[1]["y"].shape == found[2].shape == (0, 3)


@pytest.mark.parametrize("unroll", [1, 2, 3])
@pytest.mark.parametrize(
    ("error", "after"),
    [(gg.DTypeError, lambda s: gg.cast(s, "float32")), (gg.ShapeError, lambda s: gg.stack([s, s])),
     (gg.ShapeError, lambda s: (s, s))],
)  # fmt: skip
def test_a_carry_keeps_its_type_however_it_is_unrolled(unroll, error, after):
    with pytest.raises(error, match="carr"):
        gg.scan(lambda s, _: (after(s), None), gg.constant(1.0), length=2, unroll=unroll)


@pytest.mark.parametrize("within", [False, True], ids=["alone", "in a body"])
@pytest.mark.parametrize(
    "twice",
    [
        lambda p, f: gg.cond(p, lambda: gg.cond(p, f, lambda: f() * 2.0), lambda: f() * 3.0),
        lambda p, f: gg.scan(lambda s, _: (gg.fori_loop(0, 2, lambda i, t: t + f(), s), None), 0.0,
                             length=2)[0],
        lambda p, f: gg.cond(p, lambda: gg.while_loop(lambda s: s < 3.0, lambda s: s + f() + 1.0,
                                                      0.0), lambda: f()),
    ],
    ids=["cond in cond", "scan in scan", "while in cond"],
)  # fmt: skip
def test_S27_what_bodies_in_bodies_read_of_the_graph_around_a_batch(twice, within):
    rows, w0 = np.array([0.5, 0.7]), np.float64(0.3)

    def answer(vmap):
        with gg.Graph():
            x, w, p = gg.placeholder((2,)), gg.placeholder(()), gg.placeholder((), "bool")

            def read(row):
                gg.cos(w)  # for nobody
                return gg.sin(row * x[0])

            def make():
                return vmap(lambda row: twice(p, lambda: read(row)))(x) * w

            y = gg.cond(p, make, lambda: x) if within else make()
            dx, dw = gg.gradients(gg.sum(y * y), [x, w], unconnected="zero")
            f = gg.compile([x, w, p], [y, dx, dw])
            return [a for pred in (True, False) for a in f(rows, w0, pred)]

    for a, b in zip(answer(gg.vmap), answer(one_by_one), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def one_by_one(f):
    """vmap, as Python runs it."""
    return lambda x: gg.stack([f(x[i]) for i in range(x.shape[0])])


def test_a_gradient_that_flows_to_nothing_travels():
    """Of a loop whose runs pass nothing back, no loop without outputs is left in the graph."""
    with gg.Graph() as graph:
        x = gg.placeholder((2,), name="x")
        c, ys = gg.scan(lambda s, row: (s, gg.zero_gradient(row) * 2.0), 0.0, x)
        dx = gg.gradients(gg.sum(ys) + c, x, unconnected="zero")
    assert all(node.outputs for node in graph.nodes)
    table = pickle.loads(pickle.dumps({"x": x, "dx": dx}))
    with table["x"].graph:
        assert not gg.compile(table["x"], table["dx"])(np.ones(2)).any()


@pytest.mark.parametrize("region", [False, True], ids=["plain", "region"])
def test_S27_a_batch_of_gradients_of_loops_in_loops_where_some_carries_are_not_needed(region):
    """The loop backward takes less than the loop; what stood there for the rest is left out."""

    def f(row):
        def body(c):
            n, s, t = c

            def inner(u, _):
                with gg.override_gradient(lambda site, dy: [dy * 0.5, gg.NO_GRAD], inputs=[u, t]):
                    v = gg.sin(u) * gg.stop_gradient(t)
                return (gg.identity(v) if region else u), gg.cos(t) * 0.0

            return n + 1, gg.scan(inner, s * row, length=2)[0], t * 1.1

        return gg.while_loop(lambda c: c[1] < 0.9, body, (gg.constant(0), row, row + 1.0), 3)[1]

    def slope(row):
        return gg.gradients(f(row), row)

    def answer(vmap):
        with gg.Graph():
            x = gg.placeholder((2,))
            return gg.compile(x, vmap(slope)(x))(np.array([1.0, 0.95]))

    np.testing.assert_allclose(answer(gg.vmap), answer(one_by_one), rtol=1e-12)


def test_S27_a_batch_of_gradients_of_a_region_in_a_region_that_declares_a_carry_it_does_not_read():
    """The loop backward does not take that carry, and has no region of which nothing is built."""

    def slopes(row):
        def body(c):
            n, s = c
            with gg.override_gradient(
                lambda site, dy: [2.0 * dx for dx in site.default(dy)], inputs=[row, s]
            ):
                with gg.override_gradient(lambda site, dy: 3.0 * dy):
                    v = gg.sin(row)
                v = gg.negative(v)
            return n + 1, s + v

        y = gg.while_loop(lambda c: c[0] < 2, body, (gg.constant(0), row))[1]
        return gg.gradients(y, row)

    with gg.Graph():
        x = gg.placeholder((2,))
        f = gg.compile(x, gg.vmap(slopes)(x))
    rows = np.array([0.5, 0.7])
    np.testing.assert_allclose(f(rows), np.full(2, 1.0 - 2 * 2 * 3), rtol=1e-12)


# --- which carries a gradient moves through ------------------------------------------------------


def crossed(site, da, db):
    return db, da


@pytest.mark.parametrize("how", ["marked", "named by the call"])
def test_S01_a_rule_may_lead_from_one_carry_to_another(how):
    x, first = gg.constant([1.0, 2.0, 3.0]), [gg.constant(0.5), gg.constant(0.25)]
    named = []

    def run(carry, row):
        a, b = carry
        with gg.override_gradient(crossed) if how == "marked" else nullcontext():
            p, q = gg.sin(a), gg.sin(b)
        named[:] = [p.node, q.node]
        return (p + row, q), None

    last = gg.scan(run, tuple(first), x)[0][0]
    overrides = {gg.select.nodes(*named).together(): crossed} if how != "marked" else None
    found = gg.gradients(last, [*first, x], overrides=overrides, unconnected="zero")
    da, db, dx = values(found)
    assert (da, db, dx.tolist()) == (0, 1, [1, 0, 1])


@pytest.mark.parametrize("late", [False, True], ids=["read later", "read before it is made"])
def test_S01_a_rule_may_lead_to_what_no_output_of_the_loop_depends_on(late):
    """The region reads sin(b) for nobody, and its rule gives that all the gradient."""
    x, first = gg.constant([1.0, 2.0]), [gg.constant(0.5), gg.constant(0.25)]

    def run(carry, row):
        a, b = carry
        nodes = [] if late else [gg.sin(b)]
        p = a * 2.0
        if late:
            nodes.append(gg.sin(b))
        q = nodes[0] * 3.0
        both = gg.select.nodes(p.node, q.node).together()
        p.graph.mark(both, lambda site, dy: {a: gg.NO_GRAD, nodes[0]: dy}, outputs=[p])
        return (p + row, b), None

    for loop in (gg.scan, unrolled):
        last = loop(run, tuple(first), x)[0][0]
        assert values(gg.gradients(last, first, unconnected="zero")) == [0.0, np.cos(0.25)]


def test_a_loop_backward_of_known_length_reads_no_row_that_it_does_not_need():
    x = gg.placeholder((4, 3))
    last, _ = gg.scan(lambda s, row: (s * 2.0, gg.sin(row)), gg.constant([1.0, 2.0, 3.0]), x)
    h = last.node.inputs[0]
    dh = gg.gradients(gg.sum(last), h)
    (backward,) = [n for n in dh.graph.nodes if n.type == "Scan" and n is not last.node]
    assert (backward.op.length, len(backward.inputs)) == (4, 1)
    assert values(dh).tolist() == [16.0] * 3


@pytest.mark.parametrize("read", ["not at all", "compared", "stopped"])
def test_S01_a_rule_is_not_called_for_a_carry_to_which_no_gradient_flows(read):
    """It gives ones, whatever it is given."""

    def run(carry, row):
        s, aside = carry
        row = gg.where(aside > -2.0, row, 0.0) if read == "compared" else row
        row = row + gg.stop_gradient(aside) * 0.0 if read == "stopped" else row
        with gg.override_gradient(lambda site, dy: gg.ones_like(dy)):
            aside = gg.sin(s)
        return (s * row, aside), None

    x = gg.constant(2.0)
    for loop in (gg.scan, unrolled):
        (s, _), _ = loop(run, (x, x), gg.constant([1.0, 3.0]))
        assert value(gg.gradients(s, x)) == 3


# --- checkpoints ---------------------------------------------------------------------------------


def stepped(part, x, w):
    """Runs of a body whose inner part is built by `part`."""
    inner = part(lambda s, row: gg.tanh(gg.sin(s @ w) * row) + s)
    return gg.sum(gg.scan(lambda s, row: (inner(s, row), None), x[0], x)[0] ** 2)


def around(part, x, w):
    """A loop that is computed again as a whole."""
    return gg.sum(
        part(lambda x, w: gg.scan(lambda s, r: (gg.tanh(s @ w + r), s), x[0], x))(x, w)[1]
    )


def around_while(part, x, w):
    def loop(x, w):
        return gg.while_loop(
            lambda c: c[0] < 4, lambda c: (c[0] + 1, gg.tanh(c[1] @ w + x[0])), (0, x[1])
        )[1]

    return gg.sum(part(loop)(x, w) ** 2)


@pytest.mark.parametrize("program", [stepped, around, around_while])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_what_is_computed_again_in_or_around_a_loop_has_the_same_gradients(program, backend):
    x, w = gg.placeholder(X.shape), gg.placeholder(W.shape)
    made = []
    for part in (gg.rules.checkpoint, lambda f: f):
        dxs = gg.gradients(program(part, x, w), [x, w])
        made.append([*dxs, *gg.gradients(gg.sum(dxs[0] ** 2) + gg.sum(dxs[1] ** 2), [x, w])])
    found = gg.compile([x, w], made, backend=backend)(X, W)
    check(*found)
