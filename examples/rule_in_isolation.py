"""Test one rule alone, before it goes into a large graph.

For a random direction v and a random dy, two evaluations of the function give <dy, J v>, and the
rule gives <dx, v>. For a right rule they agree. A wrong sign or factor does not get through; a
wrong shape does not even build.
"""

import numpy as np

import graphgrad as gg


@gg.custom_gradient
def softplus(x):
    return gg.log1p(gg.exp(x)), lambda dy: dy * gg.nn.sigmoid(x)


@gg.custom_gradient
def wrong_sign(x):
    return gg.log1p(gg.exp(x)), lambda dy: -dy * gg.nn.sigmoid(x)


@gg.custom_gradient
def wrong_shape(x):
    return gg.log1p(gg.exp(x)), lambda dy: gg.sum(dy * gg.nn.sigmoid(x))


def disagreement(function, shape=(3, 4), eps=1e-6):
    """How far the rule of a function is from central differences, relative to what they give."""
    rng = np.random.default_rng(0)
    at, v, dy = rng.normal(size=(3, *shape))
    with gg.Graph():
        x = gg.placeholder(shape, name="x")
        y = function(x)
        forward = gg.compile(x, y)
        backward = gg.compile(x, gg.gradients(y, x, grad_ys=gg.constant(dy)))
    by_difference = np.vdot(dy, forward(at + eps * v) - forward(at - eps * v)) / (2 * eps)
    by_rule = np.vdot(backward(at), v)
    return abs(by_rule - by_difference) / abs(by_difference)


print(f"softplus:   {disagreement(softplus):.1e}")
print(f"wrong sign: {disagreement(wrong_sign):.1e}")
assert disagreement(softplus) < 1e-7
assert disagreement(wrong_sign) > 1

try:
    disagreement(wrong_shape)
except gg.GradientError as error:
    complaint = str(error)
print("wrong shape:", complaint)
assert "must return" in complaint
assert "float64[3, 4]" in complaint
