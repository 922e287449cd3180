"""Arguments and results may be lists, tuples and dicts of tensors, nested as one likes.

The gradient function gets one gradient per tensor of the result and returns one per tensor of the
arguments, in order; dicts are in the order of their sorted keys.
"""

import numpy as np

import graphgrad as gg


@gg.custom_gradient
def mix(parts, weights):
    """parts: a list of two tensors; weights: {"left": ..., "right": ...}."""
    first, second = parts
    left, right = weights["left"], weights["right"]
    results = {"mixed": left * first + right * second, "spread": first - second}

    def grad(d_mixed, d_spread):
        d_first = left * d_mixed + d_spread
        d_second = right * d_mixed - d_spread
        return d_first, d_second, gg.sum(first * d_mixed), gg.NO_GRAD  # right stays as it is

    return results, grad


with gg.Graph():
    xs = [gg.placeholder((2,), name="a"), gg.placeholder((2,), name="b")]
    params = {"left": gg.variable(0.25, name="left"), "right": gg.variable(0.75, name="right")}
    out = mix(xs, params)
    loss = gg.sum(out["mixed"]) + 10.0 * gg.sum(out["spread"])
    grads = gg.gradients(loss, {"xs": xs, "params": params})
    found = gg.compile(xs, {"out": out, "grads": grads})([1.0, 2.0], [3.0, 5.0])

print(found["out"])
print(found["grads"])
np.testing.assert_array_equal(found["out"]["mixed"], [2.5, 4.25])
np.testing.assert_array_equal(found["grads"]["xs"][0], [10.25, 10.25])
np.testing.assert_array_equal(found["grads"]["xs"][1], [-9.25, -9.25])
assert found["grads"]["params"] == {"left": 3, "right": None}
