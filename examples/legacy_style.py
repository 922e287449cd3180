"""A program as graph-mode programs were written: names, an override map, a session, feeds."""

import numpy as np

import graphgrad as gg


@gg.RegisterGradient("QuantizeGrad")
def _quantize_grad(op, grad):
    """Passes where the input was in range."""
    x = op.inputs[0]
    return gg.where(gg.abs(x) <= 1.0, grad, gg.zeros_like(grad))


g = gg.Graph()
with g.as_default():
    x = gg.placeholder((None, 2), dtype="float32", name="x")
    w = gg.variable(np.full((2, 1), 0.25, "float32"), name="w")
    with g.gradient_override_map({"Round": "QuantizeGrad"}):
        q = gg.round(x)
    out = gg.identity(q @ w, name="out")
    (dx, dw) = gg.gradients(gg.sum(out), [x, w])
    train = gg.assign(w, w - 0.5 * dw)

sess = gg.Session(graph=g)
data = np.array([[0.6, -3.0], [0.2, 0.9]], "float32")

first = sess.run("out:0", feed_dict={"x:0": data})
got = sess.run({"dx": dx, "grads": [dw, train]}, feed_dict={x: data})
second = sess.run(out, feed_dict={x: data})
fed_inside = sess.run("out:0", {q: np.ones((1, 2), "float32")})

print("out   ", first.ravel(), "->", second.ravel())
print("dx    ", got["dx"].tolist())
np.testing.assert_array_equal(first.ravel(), [-0.5, 0.25])
np.testing.assert_array_equal(got["dx"], [[0.25, 0], [0.25, 0.25]])
np.testing.assert_array_equal(got["grads"][0], [[1], [-2]])
np.testing.assert_array_equal(got["grads"][1], [[-0.25], [1.25]])
np.testing.assert_array_equal(second.ravel(), [-4, 1.25])
assert fed_inside == 1.0
assert sess.run(q.op.name + ":0", {x: data}).dtype == np.float32
