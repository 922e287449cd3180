"""Straight through: the forward pass rounds, the backward pass pretends that it did nothing.

Rounding has a gradient of zero nearly everywhere, so nothing in front of it would learn. The same
rule is put on it here in five ways; they give the same gradient.
"""

import numpy as np

import graphgrad as gg


@gg.register_gradient("straight_through")
def straight_through(site, dy):
    return dy


def binarise_in_a_region(p):
    with gg.override_gradient("straight_through"):
        return gg.round(p)


@gg.override("straight_through")
def binarise_decorated(p):
    return gg.round(p)


@gg.custom_gradient
def binarise_with_its_gradient(p):
    return gg.round(p), lambda dy: dy


def binarise_by_op_type(p):
    with gg.gradient_override_map({"Round": "Identity"}):  # the own gradient of another op
        return gg.round(p)


binarise_passing_through = gg.grad_pass_through(gg.round)

WAYS = [
    binarise_in_a_region,
    binarise_decorated,
    binarise_with_its_gradient,
    binarise_by_op_type,
    binarise_passing_through,
]

logits = np.array([-2.0, -0.1, 0.3, 4.0])
sigmoid = 1 / (1 + np.exp(-logits))

with gg.Graph():
    x = gg.placeholder((4,), name="x")
    plain = gg.gradients(gg.round(gg.nn.sigmoid(x)), x)
    bits = [binarise(gg.nn.sigmoid(x)) for binarise in WAYS]
    dxs = [gg.gradients(b, x) for b in bits]
    zero, found_bits, found_dxs = gg.compile(x, (plain, bits, dxs))(logits)

print("no override:", zero)
assert not zero.any()
for way, b, dx in zip(WAYS, found_bits, found_dxs, strict=True):
    print(f"{getattr(way, '__name__', way):27} {b} {np.round(dx, 3)}")
    np.testing.assert_array_equal(b, np.round(sigmoid))
    np.testing.assert_allclose(dx, sigmoid * (1 - sigmoid))
