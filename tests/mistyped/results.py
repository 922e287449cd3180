"""Plain mistakes in a user's program, each with what mypy calls it. Checkers find them all."""

from __future__ import annotations

import numpy as np

import graphgrad as gg

x = gg.placeholder((3,))
w = gg.variable(np.ones(3))
loss = gg.sum(w * x)


@gg.function
def doubled(t: gg.Tensor) -> gg.Tensor:
    return 2.0 * t


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
