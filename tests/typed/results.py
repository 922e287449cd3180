"""What functions return, as type checkers see it: at run time `assert_type` does nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, assert_type

import numpy as np

import graphgrad as gg
from graphgrad.extend import Array

MaybeNone = Any
"""A gradient to which nothing flows is None, for which checkers want no test."""


class Params(NamedTuple):
    """Parameters, as many users keep them."""

    w: gg.Tensor
    b: gg.Tensor


def loss_of(p: Params, x: gg.Tensor) -> gg.Tensor:
    """A number."""
    return gg.sum(p.w * x + p.b)


def gradients(p: Params, x: gg.Tensor) -> gg.Tensor:
    """The structure of xs comes back, however deep; zeros are never None."""
    loss = loss_of(p, x)
    dw: gg.Tensor = gg.gradients(loss, p.w)
    (db,) = gg.gradients(loss, [p.b])
    assert_type(db, gg.Tensor | MaybeNone)
    assert_type(gg.gradients(loss, p), Params | MaybeNone)
    assert_type(gg.gradients([loss], {"w": [p.w]}), dict[str, list[gg.Tensor]] | MaybeNone)
    assert_type(gg.gradients(loss, [p.w], unconnected="zero"), list[gg.Tensor])
    assert_type(gg.gradients(sum([loss, loss]), p.w), gg.Tensor | MaybeNone)
    assert_type(
        gg.vjp(x * p.w + p.b, (p.w, p.b), np.ones(3)), tuple[gg.Tensor, gg.Tensor] | MaybeNone
    )
    assert_type(gg.jvp(loss, p), gg.Tensor | MaybeNone)
    assert_type(gg.jacobian(x * p.w, p.w), gg.Tensor | MaybeNone)
    assert_type(gg.hvp(loss, [p.w], [p.w]), list[gg.Tensor] | MaybeNone)
    assert_type(gg.value_and_grad(loss, [p.w]), tuple[gg.Tensor, list[gg.Tensor] | MaybeNone])
    assert_type(gg.value_and_grad(loss_of)(p, x), tuple[gg.Tensor, Any])
    return dw - 0.1 * db


def values(p: Params, x: gg.Tensor) -> tuple[float, Array]:
    """Arrays in the structure of tensors."""
    loss = loss_of(p, x)
    assert_type(gg.evaluate(x), Array)
    assert_type(gg.evaluate([loss, x]), list[Array])
    assert_type(gg.evaluate({"w": p.w, "b": p.b}), dict[str, Array])
    assert_type(gg.evaluate((loss, x, x)), tuple[Array, Array, Array])
    assert_type(gg.evaluate(gg.gradients(loss, p.w)), Array)
    assert_type(gg.evaluate(gg.gradients(loss, [p.w])), list[Array])
    nested: dict[str, Array] = gg.evaluate([loss, {"w": p.w}])[1]
    evaluated: Params = gg.evaluate(p)
    number, dw = gg.evaluate((loss, gg.gradients(loss, p.w)))
    return float(number) + float(nested["w"][0]), dw + evaluated.w


def compiled(p: Params, x: gg.Tensor, updates: dict[gg.Tensor, gg.Tensor]) -> gg.CompiledFunction:
    """A compiled function says what it computes; an annotation need not."""
    loss, grads = loss_of(p, x), gg.gradients(loss_of(p, x), [p.w, p.b])
    f: gg.CompiledFunction[gg.Tensor] = gg.compile(x, loss)
    assert_type(f.outputs, gg.Tensor)
    assert_type(f(np.ones(3)), Array)
    assert_type(gg.compile([x], [loss, *grads], backend="numpy")(np.ones(3)), list[Array])
    assert_type(gg.compile(x, (loss, x), updates=updates)(np.ones(3)), tuple[Array, Array])
    assert_type(gg.compile(x, {"loss": loss})(np.ones(3)), dict[str, Array])
    step = gg.compile(x, [], updates=updates)
    step(np.ones(3))
    plain: gg.CompiledFunction = gg.compile([x], (loss, grads))
    assert_type(plain(np.ones(3)), Any)
    return plain


def one_batch(x: gg.Tensor, p: Params, any_function: Callable[..., Any]) -> gg.Tensor:
    """vmap of lambdas, functions of nestings, functions of gg; as a decorator."""

    @gg.vmap
    def doubled(t: gg.Tensor) -> gg.Tensor:
        return 2.0 * t

    assert_type(gg.vmap(lambda t: t)(x), gg.Tensor)
    assert_type(gg.vmap(lambda t, s: (t, s), (0, None))(x, 2.0), tuple[gg.Tensor, gg.Tensor])
    assert_type(gg.vmap(lambda t: gg.gradients(gg.prod(t), t))(x), gg.Tensor | MaybeNone)
    assert_type(gg.vmap(gg.vmap(gg.nn.relu))(x), gg.Tensor)
    assert_type(gg.vmap(loss_of, in_axes=(None, 0))(p, np.ones((2, 3))), gg.Tensor)
    assert_type(gg.vmap(any_function, (0, None))(x, p), Any)
    three: gg.Tensor = gg.vmap(lambda a, b, c: a + b + c)(x, x, x)
    return doubled(x) + three


def loops(x: gg.Tensor, p: Params) -> gg.Tensor:
    """The last carry, and what the runs made."""

    def step(carry: Params, row: gg.Tensor) -> tuple[Params, gg.Tensor]:
        return Params(carry.w + row, carry.b), carry.b

    def fibonacci(
        c: tuple[gg.Tensor, gg.Tensor], _: None
    ) -> tuple[tuple[gg.Tensor, gg.Tensor], gg.Tensor]:
        return (c[1], c[0] + c[1]), c[0]

    assert_type(gg.scan(lambda s, t: (s + t, s), 0.0, x), tuple[gg.Tensor, gg.Tensor])
    assert_type(gg.scan(lambda s, t: (s + t, None), x, np.ones((2, 3))), tuple[gg.Tensor, None])
    assert_type(gg.scan(lambda s, _: (s + s, (s, s)), x, length=3)[1][0], gg.Tensor)
    assert_type(gg.scan(step, p, x), tuple[Params, gg.Tensor])
    assert_type(gg.scan(step, Params(p.w, p.b), np.ones(3)), tuple[Params, gg.Tensor])
    (last, _), numbers = gg.scan(fibonacci, (0, 1), length=10)
    total, _ = gg.scan(lambda s, row: (s + row["x"] * row["y"], s), x, {"x": x, "y": x})
    (a, b), _ = gg.scan(lambda c, t: ((c[0] + t, c[1]), c[0]), (x, 0.0), x)
    other: gg.Tensor = a + b
    return last + gg.sum(numbers) + total + other


def more_loops(x: gg.Tensor, p: Params) -> gg.Tensor:
    """The carry, whose structure stays, and the rows of a map."""

    def grow(c: Params) -> Params:
        return Params(c.w * 2.0, c.b + 1.0)

    assert_type(gg.while_loop(lambda y: y < 100.0, lambda y: y * 2.0, 1.0), gg.Tensor)
    assert_type(gg.while_loop(lambda c: gg.sum(c.w) < 9.0, grow, p, max_trips=3), Params)
    assert_type(gg.fori_loop(0, 3, lambda i, y: y * 2.0 + i, x), gg.Tensor)
    assert_type(gg.fori_loop(0, gg.constant(3), lambda _, c: grow(c), p), Params)
    i, doubled = gg.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, 2.0 * c[1]), (0, x))
    i, doubled = gg.fori_loop(0, 3, lambda n, c: (c[0] + n, c[1]), (i, doubled))
    assert_type(gg.map(lambda row: gg.sum(row), x), gg.Tensor)
    assert_type(gg.map(lambda row: (row, 2.0 * row), np.ones((2, 3)))[1], gg.Tensor)
    assert_type(gg.map(grow, Params(x, x)), Params)
    y: gg.Tensor = gg.map(lambda row: row["x"] + row["y"], {"x": x, "y": x})
    other: gg.Tensor = doubled + i
    return y + other


def branches(x: gg.Tensor, p: Params, shrink: bool) -> gg.Tensor:
    """What the branches return, of which a number becomes a tensor."""
    assert_type(gg.cond(x[0] > 0, lambda: x * x, lambda: -x), gg.Tensor)
    assert_type(gg.cond(x[0] > 0, lambda: x[0], lambda: 0.0), gg.Tensor)
    assert_type(gg.cond(shrink, lambda: (x, -x), lambda: (-x, x)), tuple[gg.Tensor, gg.Tensor])
    assert_type(gg.cond(x[0] > 0, lambda: p, lambda: Params(-p.w, p.b)), Params)
    assert_type(gg.switch(1, [gg.negative, gg.square, gg.sin], x), gg.Tensor)
    assert_type(gg.switch(gg.constant(1), [lambda: [x], lambda: [-x]]), list[gg.Tensor])
    y: gg.Tensor = gg.switch(0, [lambda: x, lambda: -x])
    return y


def derivatives(p: Params, x: gg.Tensor) -> gg.Tensor:
    """Second derivatives: the structure in each place of the structure; rules of one's own."""
    loss = loss_of(p, x * p.w * p.b)
    assert_type(gg.hessian(loss, p.w), gg.Tensor | MaybeNone)
    assert_type(gg.hessian(loss, [p.w, p.b]), list[list[gg.Tensor]] | MaybeNone)
    assert_type(gg.hessian(loss, {"w": p.w}), dict[str, dict[str, gg.Tensor]] | MaybeNone)
    first: gg.Tensor = gg.hessian(loss, p)[0][1]

    @gg.custom_gradient
    def stable(t: gg.Tensor) -> tuple[gg.Tensor, Callable[[gg.Tensor], gg.Tensor]]:
        e = gg.exp(t)
        return gg.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))

    assert_type(stable(x), gg.Tensor)
    assert_type(stable(1.0), gg.Tensor)
    assert_type(gg.grad_pass_through(gg.round)(x), gg.Tensor)
    return stable(x) + first


def rows(x: gg.Tensor) -> gg.Tensor:
    """Rows of the zoo: rules, tensors, and as many tensors as tasks."""
    assert_type(gg.rules.atan(alpha=3.0), gg.Rule)
    assert_type(gg.rules.attn_add(epsilon=1e-6), gg.Rule)
    assert_type(gg.rules.jump_relu(x, x, bandwidth=0.1), gg.Tensor)
    assert_type(gg.rules.clip_global_norm(x, x, limit=1.0), tuple[gg.Tensor, ...])
    assert_type(gg.rules.jd_mgda(x, 2, epsilon=0.1), tuple[gg.Tensor, ...])
    return gg.rules.soft_sort(x, method="softsort")


def fetched(x: gg.Tensor, session: gg.Session) -> tuple[float, Array]:
    """Arrays in the structure of what is fetched, by tensor or name; nothing of a node."""
    feeds, name = {x: np.ones(3)}, x.name
    assert_type(session.run(x), Array)
    assert_type(session.run(name, feed_dict=feeds), Array)
    assert_type(session.run([x, x], feeds), list[Array])
    assert_type(session.run([name, name]), list[Array])
    assert_type(session.run({"x": x}), dict[str, Array])
    assert_type(session.run((x, name)), tuple[Array, Array])
    session.run(x.node)
    _, number = session.run([x.node, gg.sum(x)], feeds)
    params: Params = session.run(Params(x, x))
    return float(number), np.asarray(params.w)


def functions(arrays: dict[str, Array]) -> float:
    """Functions of arrays, from functions of tensors."""

    def loss_by_name(params: dict[str, gg.Tensor], x: gg.Tensor) -> gg.Tensor:
        return gg.sum(params["w"] * x)

    @gg.function
    def doubled(t: gg.Tensor) -> gg.Tensor:
        return t * 2.0

    @gg.function(backend="numpy")
    def both(params: dict[str, gg.Tensor], x: gg.Tensor) -> tuple[gg.Tensor, gg.Tensor]:
        return loss_by_name(params, x), x

    assert_type(doubled, gg.Function[gg.Tensor])
    assert_type(doubled(np.ones(2)), Array)
    assert_type(doubled.build(1.0)(2.0), Array)
    assert_type(gg.function(lambda t: t)(1.0), Array)
    assert_type(gg.function(lambda s, t: [s, t])(1.0, 2.0), list[Array])
    assert_type(gg.function(gg.value_and_grad(loss_by_name))(arrays, 2.0)[0], Array)
    number, _ = both(arrays, np.ones(3))
    return float(number)


def drawn() -> Array:
    """What follows a draw is checked, too."""
    return gg.evaluate(gg.random.normal((3,), seed=0))
