"""Plain mistakes in a user's program, each with what mypy calls it. Checkers find them all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import graphgrad as gg

x = gg.placeholder((3,))
w = gg.variable(np.ones(3))
loss = gg.sum(w * x)


@gg.function
def doubled(t: gg.Tensor) -> gg.Tensor:
    return 2.0 * t


@gg.custom_gradient
def halved(t: gg.Tensor) -> tuple[gg.Tensor, Callable[[gg.Tensor], gg.Tensor]]:
    return t / 2.0, lambda dy: dy / 2.0


def step(carry: gg.Tensor, row: gg.Tensor) -> tuple[gg.Tensor, gg.Tensor]:
    return carry + row, carry


gg.gradients(loss, w).no_such_thing()  # union-attr
gg.gradients(loss, [w]).no_such_thing()  # union-attr
gg.gradients(loss, [w])[0].no_such_thing()  # union-attr
gg.gradients(loss, {"w": [w]})["w"][0].no_such_thing()  # union-attr
gg.gradients(loss, [w], unconnected="zero")[0].no_such_thing()  # attr-defined
gg.gradients("loss", w)  # call-overload
gg.gradients(loss, 3)  # call-overload
gg.value_and_grad(loss, [w])[2]  # misc
gg.jacobian(w, w).no_such_thing()  # union-attr

gg.evaluate(w).no_such_thing()  # attr-defined
gg.evaluate([loss, w]).no_such_thing()  # attr-defined
gg.evaluate([loss, w])[0].no_such_thing()  # attr-defined
gg.evaluate({"w": w})["w"].no_such_thing()  # attr-defined
gg.evaluate((loss, w))[2]  # misc
gg.evaluate((loss, [w])).no_such_thing()  # attr-defined
gg.evaluate(gg.gradients(loss, w)).no_such_thing()  # attr-defined
gg.evaluate("w")  # call-overload

gg.compile(x, loss)(np.ones(3)).no_such_thing()  # attr-defined
gg.compile(x, [loss, w])(np.ones(3))[0].no_such_thing()  # attr-defined
gg.compile(x, [loss, *gg.gradients(loss, [w])])(np.ones(3))[0].no_such_thing()  # attr-defined
gg.compile(x, (loss, w))(np.ones(3))[2]  # misc
gg.compile(x, {"w": w})(np.ones(3))["w"].no_such_thing()  # attr-defined
gg.compile(x, [loss, [w]])(np.ones(3)).no_such_thing()  # attr-defined
gg.compile(x, loss).no_such_thing()  # attr-defined
gg.compile(x, "loss")  # call-overload
gg.compile("x", loss)  # arg-type
gg.compile(x, loss, backend=3)  # call-overload

gg.vmap(lambda t: t)(x).no_such_thing()  # attr-defined
gg.vmap(lambda s, t: (s, t))(x, x)[2]  # misc
gg.vmap(lambda t: t.no_such_thing())  # attr-defined
gg.vmap(gg.nn.relu)(x).no_such_thing()  # attr-defined
gg.vmap(doubled.fn)(x).no_such_thing()  # attr-defined
gg.vmap(3)  # call-overload

gg.scan(step, 0.0, x)[0].no_such_thing()  # attr-defined
gg.scan(lambda s, t: (s + t, s), 0.0, x)[1].no_such_thing()  # attr-defined
gg.scan(lambda s, _: (s + s, None), w, length=3)[0].no_such_thing()  # attr-defined
gg.scan(lambda s, t: (t.no_such_thing(), s), w, x)  # attr-defined
gg.scan(step, (w, w), x)[0].no_such_thing()  # attr-defined
gg.scan(doubled.fn, 0.0, x)  # arg-type

gg.while_loop(lambda y: y < 9.0, lambda y: 2.0 * y, 1.0).no_such_thing()  # attr-defined
gg.while_loop(lambda y: y < 9.0, lambda y: y.no_such_thing(), 1.0)  # attr-defined
gg.while_loop(lambda c: c[0] < 9.0, lambda c: (2.0 * c[0], w), (1.0, w))[2]  # misc
gg.fori_loop(0, 3, lambda i, y: y + i, w).no_such_thing()  # attr-defined
gg.fori_loop(0, 3, lambda i, y: y.no_such_thing(), w)  # attr-defined
gg.map(lambda row: 2.0 * row, w).no_such_thing()  # attr-defined
gg.map(lambda row: row.no_such_thing(), w)  # attr-defined
gg.map(doubled.fn, [w, w]).no_such_thing()  # attr-defined
gg.cond(w[0] > 0, lambda: w, lambda: -w).no_such_thing()  # attr-defined
gg.cond(w[0] > 0, lambda: (w, w), lambda: (x, x))[2]  # misc
gg.cond(w[0] > 0, w, lambda: -w)  # call-overload
gg.switch(1, [gg.negative, gg.sin], w).no_such_thing()  # attr-defined
gg.switch(1, gg.negative, w)  # arg-type
gg.hessian(loss, w).no_such_thing()  # union-attr
gg.hessian(loss, [w])[0][0].no_such_thing()  # union-attr
gg.hessian(loss, 3)  # call-overload
halved(x).no_such_thing()  # attr-defined
gg.grad_pass_through(gg.round)(x).no_such_thing()  # attr-defined
gg.custom_gradient(doubled.fn)  # arg-type
gg.Session().run(w).no_such_thing()  # attr-defined
gg.Session().run([loss, w])[0].no_such_thing()  # attr-defined
gg.Session().run((loss, w))[2]  # misc
gg.Session().run(3)  # call-overload

doubled(1.0).no_such_thing()  # attr-defined
doubled.build(1.0)(2.0).no_such_thing()  # attr-defined
gg.function(lambda t: t)(1.0).no_such_thing()  # attr-defined
gg.function(lambda s, t: (s, t))(1.0, 2.0)[2]  # misc
gg.function(backend="numpy")(step)(1.0, 2.0)[2]  # misc
gg.function(3)  # call-overload

gg.nn.no_such_thing(x)  # attr-defined
gg.optimizers.no_such_thing(0.1)  # attr-defined
gg.random.no_such_thing((3,))  # attr-defined
gg.random.normal((3,)).no_such_thing()  # attr-defined
gg.at(x)[0].no_such_thing(1.0)  # attr-defined
gg.no_such_thing(x)  # attr-defined
