"""One forward graph, several backward graphs: overrides are chosen when a gradient is asked for."""

import numpy as np

import graphgrad as gg


@gg.register_gradient("through_the_sign")
def through_the_sign(site, dy):
    """As if the sign were the identity, where its input is small."""
    (x,) = site.inputs
    return gg.where(gg.abs(x) <= 1, dy, 0.0)


with gg.Graph() as graph:
    x = gg.placeholder((3,), name="x")
    with gg.override_gradient("through_the_sign") as region:
        bits = gg.sign(x)
    loss = gg.sum(bits * [1.0, 2.0, 3.0])

    as_marked = gg.gradients(loss, x)
    all_off = gg.gradients(loss, x, overrides="none")
    this_off = gg.gradients(loss, x, overrides={region: None})
    replaced = gg.gradients(loss, x, overrides={region: lambda site, dy: 10.0 * dy})
    again = gg.gradients(loss, x)  # nothing of all that has stayed behind

    f = gg.compile(x, (loss, [as_marked, all_off, this_off, replaced, again]))

value, found = f([-0.5, 0.2, 4.0])
names = ["as marked", "all off", "this one off", "replaced", "again"]
for name, dx in zip(names, found, strict=True):
    print(f"{name:13}", dx)
expected = [[1, 2, 0], [0, 0, 0], [0, 0, 0], [10, 20, 30], [1, 2, 0]]
np.testing.assert_array_equal(found, expected)
assert value == 4
assert len(graph.find("*Sign*")) == 1  # one forward pass for all of them
