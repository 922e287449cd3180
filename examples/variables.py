"""A custom gradient over a function that reads variables which are no arguments.

`grad` then takes `variables` and returns two things: the gradients of the arguments, and those of
the variables, in the order in which the function first read them.
"""

import numpy as np

import graphgrad as gg

with gg.Graph():
    w = gg.variable([[1.0, 2.0], [3.0, 4.0]], name="w")
    b = gg.variable([0.5, -0.5], name="b")
    x = gg.placeholder(("N", 2), name="x")

    @gg.custom_gradient
    def slow_layer(x):
        """A layer whose weights learn at a tenth of the speed."""

        def grad(dy, variables=None):
            weights, _bias = variables
            return dy @ weights.T, [0.1 * (x.T @ dy), 0.1 * gg.sum(dy, axis=0)]

        return x @ w + b, grad

    slow = gg.gradients(gg.sum(slow_layer(x)), [x, w, b])
    plain = gg.gradients(gg.sum(x @ w + b), [x, w, b])
    f = gg.compile(x, (slow, plain))

    @gg.custom_gradient
    def forgetful(x):
        return x @ w, lambda dy: dy @ w.T

    try:
        gg.gradients(forgetful(x), w)
    except gg.GradientError as error:
        complaint = str(error)

slow, plain = f(np.array([[1.0, 2.0], [5.0, 7.0], [0.0, 1.0]]))
for name, s, p in zip(["x", "w", "b"], slow, plain, strict=True):
    print(f"{name}: plain {p.tolist()}  slow {s.tolist()}")
np.testing.assert_allclose(slow[0], plain[0])
np.testing.assert_allclose(slow[1], 0.1 * plain[1])
np.testing.assert_allclose(slow[2], 0.1 * plain[2])
print("without `variables`:", complaint.splitlines()[0])
assert "w:0" in complaint
