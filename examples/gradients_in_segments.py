"""A gradient taken piece by piece: with respect to a tensor in the middle, then on from there."""

import numpy as np

import graphgrad as gg

with gg.Graph():
    x = gg.placeholder((4, 3), name="x")
    w = gg.variable(np.random.default_rng(0).normal(size=(3, 3)), name="w")
    h = gg.tanh(x @ w)
    with gg.override_gradient(lambda site, dy: 2.0 * dy):  # rules count in their own segment
        middle = gg.exp(h)
    loss = gg.sum(gg.sin(middle @ w))

    whole = gg.gradients(loss, [x, w])

    d_middle, d_w2 = gg.gradients(loss, [middle, w], stop_gradients=[middle])
    dx, d_w1 = gg.gradients(middle, [x, w], grad_ys=d_middle)
    parts = [dx, d_w1 + d_w2]

    f = gg.compile(x, [whole, parts])

whole, parts = f(np.random.default_rng(1).normal(size=(4, 3)))
print("gradient of w, whole:   ", np.round(whole[1][0], 4))
print("gradient of w, in parts:", np.round(parts[1][0], 4))
np.testing.assert_allclose(whole[0], parts[0])
np.testing.assert_allclose(whole[1], parts[1])
