"""Guided backpropagation: at each ReLU only positive gradients pass, where the output is positive.

The network is built without a thought of it. The rules are put on when the gradient is asked for,
so one graph gives the plain gradient, DeconvNet and guided backpropagation side by side.
"""

import numpy as np

import graphgrad as gg


@gg.register_gradient("DeconvRelu")
def deconv_relu(op, grad):
    return gg.where(grad > 0, grad, 0.0)


@gg.register_gradient("GuidedRelu")
def guided_relu(op, grad):
    (y,) = op.outputs
    return gg.where((grad > 0) & (y > 0), grad, 0.0)


rng = np.random.default_rng(0)
w1, w2, w3 = rng.normal(size=(6, 8)), rng.normal(size=(8, 5)), rng.normal(size=(5, 1))

with gg.Graph():
    image = gg.placeholder((1, 6), name="image")
    score = gg.nn.relu(gg.nn.relu(image @ w1) @ w2) @ w3
    saliency = {
        "plain": gg.gradients(score, image),
        "deconv": gg.gradients(score, image, overrides={"Relu": "DeconvRelu"}),
        "guided": gg.gradients(score, image, overrides={"Relu": "GuidedRelu"}),
    }
    found = gg.compile(image, saliency)

a = rng.normal(size=(1, 6))
maps = found(a)
for name, value in maps.items():
    print(f"{name:7}", np.round(value[0], 2))

# By hand: through two layers, each with its gate.
h1 = a @ w1
h2 = np.maximum(h1, 0) @ w2


def by_hand(gate):
    g2 = gate(w3.T, h2)
    return gate(g2 @ w2.T, h1) @ w1.T


np.testing.assert_allclose(maps["plain"], by_hand(lambda g, h: g * (h > 0)))
np.testing.assert_allclose(maps["deconv"], by_hand(lambda g, h: g * (g > 0)))
np.testing.assert_allclose(maps["guided"], by_hand(lambda g, h: g * ((g > 0) & (h > 0))))
