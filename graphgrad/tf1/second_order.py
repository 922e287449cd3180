"""Second derivatives, and gradients against differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from .create import apply, constant, convert_to_tensor, name_scope
from .gradients import gradients
from .loops import while_loop
from .ops import array as A
from .scope import default_stack
from .tensor_array import TensorArray

__all__ = ["compute_gradient", "compute_gradient_error", "hessian_vector_product", "hessians"]


def hessians(
    ys: Any,
    xs: Any,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
) -> list[Any]:
    """The second derivatives of the sum of ys, for each of xs."""
    single = xs if isinstance(xs, list | tuple) else [xs]
    found = []
    with name_scope(name, "hessians"):
        firsts = gradients(ys, list(single))
        for x, dx in zip(single, firsts, strict=True):
            if dx is None:
                raise ValueError(f"ys do not depend on {x.name}")
            flat = A.reshape(dx, [-1])
            n = flat.shape[0].value
            count = A.size(x) if n is None else constant(n, "int32")

            def step(i: Any, rows: Any, flat: Any = flat, x: Any = x) -> Any:
                part = apply("GatherV2", flat, i, 0, batch_dims=0)
                return i + 1, rows.write(i, _or_zeros(gradients(part, x)[0], x))

            rows = TensorArray(dx.dtype, count)
            _, rows = while_loop(lambda i, _, n=count: i < n, step, (constant(0), rows))
            shape = A.shape(x)
            made = A.reshape(rows.stack(), A.concat([shape, shape], 0))
            made.set_shape(convert_to_tensor(x).shape.concatenate(convert_to_tensor(x).shape))
            found.append(made)
    return found


def _or_zeros(g: Any, x: Any) -> Any:
    return A.zeros_like(x) if g is None else g


def hessian_vector_product(ys: Any, xs: Any, v: Any) -> list[Any]:
    """The second derivatives of ys, times v."""
    firsts = gradients(ys, xs)
    products = [
        apply("Mul", g, A.stop_gradient(w)) for g, w in zip(firsts, v, strict=True) if g is not None
    ]
    return gradients(products, xs)


def compute_gradient(
    x: Any,
    x_shape: Any,
    y: Any,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: Any = None,
) -> Any:
    """The Jacobian by `gradients` and the one by differences: rows are of x, columns of y."""
    if isinstance(x, list):
        return [
            compute_gradient(xi, s, y, y_shape, v, delta, init_targets, extra_feed_dict)
            for xi, s, v in zip(x, x_shape, x_init_value or [None] * len(x), strict=True)
        ]
    session = default_stack("session")[-1]
    if init_targets is not None:
        for op in init_targets if isinstance(init_targets, list | tuple) else [init_targets]:
            op.run()
    feeds = dict(extra_feed_dict or {})
    kind = x.dtype.base_dtype.numpy
    if x_init_value is None:
        x_init_value = np.random.default_rng(0).random(tuple(x_shape)).astype(kind)
    at = np.array(x_init_value, kind)
    dy = A.placeholder(y.dtype.base_dtype, list(y_shape))
    (dx,) = gradients(y, x, grad_ys=dy)
    n, m = int(np.prod(x_shape)), int(np.prod(y_shape))
    said, found = np.zeros((n, m), kind), np.zeros((n, m), kind)
    for j in range(m):
        unit = np.zeros(m, y.dtype.base_dtype.numpy)
        unit[j] = 1
        if dx is not None:
            fed = {**feeds, x: at, dy: unit.reshape(tuple(y_shape))}
            said[:, j] = session.run(dx, fed).reshape(-1)
    for i in range(n):
        moved = []
        for sign in (-1, 1):
            x_moved = at.copy().reshape(-1)
            x_moved[i] += sign * delta
            moved.append(session.run(y, {**feeds, x: x_moved.reshape(at.shape)}))
        found[i] = ((moved[1] - moved[0]) / (2 * delta)).reshape(-1)
    return said, found


def compute_gradient_error(
    x: Any,
    x_shape: Any,
    y: Any,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: Any = None,
) -> Any:
    """The greatest difference between the two Jacobians."""
    made = compute_gradient(x, x_shape, y, y_shape, x_init_value, delta, init_targets,
                            extra_feed_dict)  # fmt: skip
    pairs = [made] if isinstance(made, tuple) else made
    return max((float(np.max(np.abs(a - b))) if a.size else 0.0) for a, b in pairs)
