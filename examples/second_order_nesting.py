"""Gradients of gradients: a rule builds graph, so it is differentiated like everything else."""

import graphgrad as gg


@gg.custom_gradient
def cube(x):
    def grad(dy):
        return dy * 3.0 * x**2

    return x**3, grad


@gg.register_gradient("double")
def double(site, dy):
    return 2.0 * site.default(dy)[0]


with gg.Graph():
    x = gg.placeholder((), name="x")
    y = cube(x)
    first = gg.gradients(y, x)
    second = gg.gradients(first, x)
    third = gg.gradients(second, x)

    with gg.override_gradient("double"):  # a region around the call: its rule wins
        z = cube(x)
    doubled = gg.gradients(z, x)
    of_doubled = gg.gradients(doubled, x)

    f = gg.compile(x, [y, first, second, third, doubled, of_doubled])

found = [float(v) for v in f(2.0)]
print("x**3 at 2 and its derivatives:", found[:4])
print("with the gradient doubled:    ", found[4:])
assert found == [8, 12, 12, 6, 24, 24]
