"""What wrote version_1.gg, once: `python -m tests.files.version_1`. It is kept to be read."""

from pathlib import Path

import numpy as np

import graphgrad as gg

HERE = Path(__file__).parent


def scaled(site, dy):
    return 2.0 * dy * site.inputs[0]


def stepped(site, dx):
    return 0.5 * dx


def program():
    """A bit of everything that a file can hold."""
    gg.register_gradient("version_1/scaled", jvp=stepped, replace=True)(scaled)
    with gg.Graph("version 1", seed=3) as graph:
        x = gg.placeholder(("N", 3), name="x")
        w = gg.variable(np.linspace(-1, 1, 120).reshape(3, 40), name="layer/w")
        c = gg.constant(np.array([1 + 2j, 0.5 - 1j]))
        with gg.name_scope("rules"):
            with gg.override_gradient("version_1/scaled", strength=(1, 0.5)):
                y = gg.tanh(x)
            with gg.override_gradient(lambda site, dy: dy * gg.sum(w) - site.default(dy)[0]):
                z = gg.exp(gg.sin(y))
            with gg.gradient_override_map({"Sinh": "Identity"}):
                z = z + gg.sinh(y)
        z = gg.cond(gg.sum(z) > 0, lambda: gg.tanh(z) @ w, lambda: -z @ w)
        last, rows = gg.scan(lambda carry, row: (gg.sin(carry + row), carry), gg.zeros((40,)), z)
        many = gg.while_loop(lambda v: gg.sum(v) < 30.0, lambda v: v * 2.0 + 1.0, gg.abs(last))
        noise = gg.random.normal((40,), seed=11) * gg.real(gg.sum(c * c))
        values, places = gg.topk(gg.sum(rows, 0) + noise, 5)
        loss = gg.sum(many) + gg.sum(values) + gg.sum(gg.nn.dropout(y, 0.5))
        dx, dw = gg.gradients(loss, [x, w])
        outputs = {"loss": loss, "dx": dx, "places": places, "c": c}
    return graph, x, outputs, {w: w - 0.01 * dw}


if __name__ == "__main__":
    graph, x, outputs, updates = program()
    with graph:
        (again,) = gg.gradients(gg.sum(outputs["dx"]), [x])
    asked = gg.compile([x], {**outputs, "again": again}, updates=updates)
    for _ in range(2):
        found = asked(np.array([[0.5, -1.0, 2.0]]))
    graph, x, outputs, updates = program()
    metadata = {"made": "to be read for ever", "second run": found}
    gg.save(HERE / "version_1.gg", graph, {"step": ([x], outputs, updates)}, metadata)
