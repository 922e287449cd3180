"""Every override of the survival matrix through JAX: honoured, or a loud error; never lost."""

import pytest

import graphgrad as gg

from ..each import each
from ..survival.matrix import differs
from ..survival.overrides import OVERRIDES
from ..survival.transforms import EXAMPLES, WEIGHTS, X, known, second, world

jax = pytest.importorskip("jax")
jnp = jax.numpy
spec = jax.sharding.PartitionSpec

REFUSED = {
    "BlackBox": r"(?s)JAX assumes that functions are pure.*overrides\.py:\d+",
    "Draws": r"(?s)draws random numbers without a seed.*Draws \(overrides\.py:\d+",
}
"""Rows that are an error, with what it says."""

NOT_LINEAR = {"OwnJvp", *(row.name for row in OVERRIDES if not row.linear)}


@pytest.fixture(scope="module", autouse=True)
def _sixty_four_bits():
    with jax.enable_x64(True):
        yield


def loss_of(row):
    """loss(x, state) of a row as JAX differentiates it, and the state."""
    with gg.Graph():
        w = world(row)
        f = gg.compile(w.x, w.loss, backend="numpy")
    fn = f.as_jax(gradients=2)
    return lambda x, state: fn([x], state)[0], f.state_tree()


def weighted(dxs):
    """What the second order is taken of, as in the matrix."""
    dx, extra = dxs
    return jnp.sum(WEIGHTS * dx) + 0.9 * sum(jnp.sum(v) for v in extra.values())


def both_orders(loss, state, through=lambda f: f):
    grad = through(jax.grad(loss, (0, 1)))
    again = through(jax.grad(lambda x, s: weighted(grad(x, s)), (0, 1)))
    return [loss(X, state), *jax.tree.leaves(grad(X, state)), *jax.tree.leaves(again(X, state))]


def plain(loss, state):
    return both_orders(loss, state)


def jitted(loss, state):
    return both_orders(jax.jit(loss), state, jax.jit)


def by_jacobian(loss, state):
    """Rows of the Hessian, weighted, instead of the gradient of a weighted sum."""
    dx, extra = jax.jacrev(jax.grad(loss, (0, 1)), (0, 1))(X, state)
    d2x, d2extra = dx[0], dx[1]
    from_x = WEIGHTS @ d2x + 0.9 * sum(jnp.sum(v[0], range(v[0].ndim - 1)) for v in extra.values())
    again = [
        jnp.tensordot(WEIGHTS, d2extra[k], 1) + 0.9 * sum(jnp.sum(v[1][k]) for v in extra.values())
        for k in d2extra
    ]
    return [*both_orders(loss, state)[: 2 + len(state)], from_x, *again]


def sharded(loss, state):
    """JAX has `shard_map` of what has rules of its own under `jit` alone."""
    mesh = jax.make_mesh((1,), ("devices",))
    specs = {"in_specs": (spec(), spec()), "out_specs": spec()}
    return both_orders(jax.jit(jax.shard_map(loss, mesh=mesh, **specs)), state)


def exported(loss, state):
    """Both orders, from a file."""
    made = jax.export.export(jax.jit(lambda x, s: both_orders_at(loss, x, s)))(X, state)
    return jax.export.deserialize(made.serialize()).call(X, state)


def both_orders_at(loss, x, state):
    grad = jax.grad(loss, (0, 1))
    again = jax.grad(lambda x, s: weighted(grad(x, s)), (0, 1))
    return [loss(x, state), *jax.tree.leaves(grad(x, state)), *jax.tree.leaves(again(x, state))]


WAYS = {f.__name__: f for f in (plain, jitted, by_jacobian, sharded, exported)}
ROWS = [row for row in OVERRIDES if row.name != "Random"]
CELLS = [(f"{row.name}, {name}", row, way) for row in ROWS for name, way in WAYS.items()]


def row_of(name):
    return name.partition(",")[0]


@each(CELLS[::6], row_of)
def test_an_override_survives_jax(row, way):
    """Each sixth: most rows in one way, each way with a sixth of the rows."""
    survives(row, way)


@pytest.mark.slow
@each([cell for i, cell in enumerate(CELLS) if i % 6], row_of)
def test_an_override_survives_jax_in_every_way(row, way):
    survives(row, way)


def survives(row, way):
    if row.name in REFUSED:
        with pytest.raises((gg.GraphError, gg.StateError), match=REFUSED[row.name]):
            way(*loss_of(row))
        return
    found = way(*loss_of(row))
    expected = known(row, second)
    if way is by_jacobian and row.name in NOT_LINEAR:  # a weighted sum of rows is another thing
        found, expected = (values[: 1 + len(values) // 2] for values in (found, expected))
    assert [differs(a, b) for a, b in zip(found, expected, strict=True)] == [""] * len(expected)


@each([(row.name, row) for row in ROWS])
def test_an_override_survives_vmap_of_jax(row):
    if row.name in REFUSED:
        pytest.skip("an error without vmap, too")
    loss, state = loss_of(row)
    found = jax.vmap(jax.grad(loss), (0, None))(EXAMPLES, state)
    for got, x in zip(found, EXAMPLES, strict=True):
        assert differs(got, known(row, second, tuple(x))[1]) == ""
