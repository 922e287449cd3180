"""Straight through: the forward pass rounds, the backward pass pretends that it did nothing.

Rounding has a gradient of zero nearly everywhere, so nothing in front of it would learn. The same
rule is put on it here in five ways; they give the same gradient.
"""

import numpy as np

import graphgrad as gg


@gg.register_gradient("as_if_identity")
def as_if_identity(site, dy):
    return dy


def binarise_in_a_region(p):
    with gg.override_gradient("as_if_identity"):
        return gg.round(p)


@gg.override("as_if_identity")
def binarise_decorated(p):
    return gg.round(p)


@gg.custom_gradient
def binarise_with_its_gradient(p):
    return gg.round(p), lambda dy: dy


def binarise_by_op_type(p):
    with gg.gradient_override_map({"Round": "Identity"}):  # the own gradient of another op
        return gg.round(p)


WAYS = {
    "a region": binarise_in_a_region,
    "a decorated function": binarise_decorated,
    "custom_gradient": binarise_with_its_gradient,
    "a map of op types": binarise_by_op_type,
    "grad_pass_through": gg.grad_pass_through(gg.round),
}

logits = np.array([-2.0, -0.1, 0.3, 4.0])
sigmoid = 1 / (1 + np.exp(-logits))

with gg.Graph():
    x = gg.placeholder((4,), name="x")
    plain = gg.gradients(gg.round(gg.nn.sigmoid(x)), x)
    bits = {way: binarise(gg.nn.sigmoid(x)) for way, binarise in WAYS.items()}
    dxs = {way: gg.gradients(b, x) for way, b in bits.items()}
    plain, bits, dxs = gg.compile(x, (plain, bits, dxs))(logits)

print(f"{'no override':20} {plain}")
assert not plain.any()
for way in WAYS:
    print(f"{way:20} {bits[way]} {np.round(dxs[way], 3)}")
    np.testing.assert_array_equal(bits[way], np.round(sigmoid))
    np.testing.assert_allclose(dxs[way], sigmoid * (1 - sigmoid))
