"""A rule for convolutions that keeps their filters symmetric while they are trained.

It changes one of the two gradients of the op and leaves the other as it is.
"""

import numpy as np

import graphgrad as gg


@gg.register_gradient("SymmetricFilter")
def symmetric_filter(op, grad):
    _, d_filter = op.default(grad)
    mirrored = gg.permute_dims(d_filter, (0, 1, 3, 2))
    return gg.DEFAULT, 0.5 * (d_filter + mirrored)


rng = np.random.default_rng(0)
start = rng.normal(size=(3, 3, 4, 4))
start = start + start.transpose(0, 1, 3, 2)


def train(op_type_map):
    """How far from symmetric the filters are after some steps of training."""
    with gg.Graph() as graph:
        x = gg.placeholder((2, 6, 6, 4), name="x")
        w = gg.variable(start, name="w")
        with gg.gradient_override_map(op_type_map):
            y = gg.nn.conv(x, w, padding="SAME")
        loss = gg.mean(gg.square(y - 1.0))
        updates = gg.optimizers.SGD(0.01).updates([w], [gg.gradients(loss, w)])
        step = gg.compile(x, loss, updates=updates)
    data = rng.normal(size=(2, 6, 6, 4))
    losses = [float(step(data)) for _ in range(10)]
    assert losses[-1] < losses[0]
    return np.abs(graph.state[w] - graph.state[w].transpose(0, 1, 3, 2)).max()


with_rule, without = train({"Conv2D": "SymmetricFilter"}), train({"Conv2D": None})
print(f"asymmetry with the rule {with_rule:.1e}, without {without:.1e}")
assert with_rule < 1e-12
assert without > 1e-3
