"""An op of one's own: its types, its kernel, its gradient, and samples to test it on.

One class is all there is to an op. Where even a kernel is too much, `py_function` calls any
Python function on arrays.
"""

import numpy as np

import graphgrad as gg
from graphgrad.extend import Op, apply, as_tensor, check_op, tensor_type


class Swish(Op):
    """y = x * s(beta * x) with the logistic s; dx = dy * (s + beta * y * (1 - s))."""

    beta: float = 1.0
    elementwise = True

    def infer(self, x):
        """One output, of the type of x."""
        if x.dtype.kind != "f":
            raise gg.DTypeError(f"Swish takes floating numbers, got {x}")
        return (tensor_type(x.shape, x.dtype),)

    def kernel(self, xp, x):
        """Computed in an array namespace xp."""
        return x / (1 + xp.exp(-self.beta * x))

    def vjp(self, node, dy):
        """Builds graph, so that it has a gradient too."""
        (x,), (y,) = node.inputs, node.outputs
        s = gg.nn.sigmoid(self.beta * x)
        return (dy * (s + self.beta * y * (1 - s)),)

    @classmethod
    def samples(cls, rng):
        """What tests apply it to."""
        yield cls(), [rng.normal(size=(2, 3))]
        yield cls(2.0), [rng.normal(size=(4,))]


def swish(x, beta=1.0):
    return apply(Swish(beta), as_tensor(x))


report = check_op(
    Swish
)  # derivatives of both orders, vmap, layouts, backends: all that is promised
print(report)
report.raise_if_failed()

with gg.Graph():
    x = gg.placeholder((3,))
    with gg.gradient_override_map({"Swish": "Identity"}):  # its type is overridden as any other
        straight = gg.gradients(swish(x), x)
    types = [((3,), "float64")]
    root = gg.py_function(np.cbrt, [x], types, vjp=lambda node, dy: dy / (3 * root**2))
    found = gg.compile(x, [straight, root, gg.gradients(root, x)])(np.array([1.0, 8.0, 27.0]))
print("cube roots", found[1], "and their gradients", np.round(found[2], 3))
np.testing.assert_array_equal(found[0], [1, 1, 1])
np.testing.assert_allclose(found[2], [1 / 3, 1 / 12, 1 / 27])
