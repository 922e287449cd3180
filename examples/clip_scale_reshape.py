"""Clip, scale or reshape the gradients through one subgraph only.

Such rules do not replace a gradient, they change it: `site.default` is what it would have been.
"""

import numpy as np

import graphgrad as gg


@gg.register_gradient("clip_to_limit")
def clip_to_limit(site, *dys):
    """Each gradient of the region, held within the limit that the region was opened with."""
    limit = site.get_attr("limit")
    return [gg.clip(dx, -limit, limit) for dx in site.default(*dys)]


@gg.register_gradient("scale_by_factor")
def scale_by_factor(site, *dys):
    return [site.get_attr("factor") * dx for dx in site.default(*dys)]


@gg.register_gradient("row_means")
def row_means(site, dy):
    """The gradient reshaped to rows; all of a row gets its mean."""
    (dx,) = site.default(dy)
    rows = gg.reshape(dx, (-1, 2))
    means = gg.mean(rows, axis=1, keepdims=True)
    return gg.reshape(gg.broadcast_to(means, rows.shape), dx.shape)


values = np.array([0.1, 1.0, 3.0, 5.0])

with gg.Graph():
    x = gg.placeholder((4,), name="x")
    with gg.override_gradient("clip_to_limit", limit=6.0):
        a = x**3
    with gg.override_gradient("scale_by_factor", factor=0.1):
        b = x**3
    with gg.override_gradient("row_means"):
        c = x**3
    plain = x**3
    dxs = [gg.gradients(2.0 * y, x) for y in (plain, a, b, c)]  # 2 * y is outside: plain
    true, clipped_dx, scaled_dx, mean_dx = gg.compile(x, dxs)(values)

print("plain    ", true)
print("clipped  ", clipped_dx)
print("scaled   ", scaled_dx)
print("row means", mean_dx)
np.testing.assert_allclose(true, 6 * values**2)
np.testing.assert_allclose(clipped_dx, np.minimum(true, 6))
np.testing.assert_allclose(scaled_dx, 0.1 * true)
np.testing.assert_allclose(mean_dx, true.reshape(2, 2).mean(axis=1).repeat(2))
