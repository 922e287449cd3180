"""What runs along an axis, on JAX: as loops of XLA, whose number of steps may be a symbol."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from ...ops.arrays.searching import SearchSorted
from ...ops.nn.ctc import Banded
from ...ops.reduce.cumulative import Recurrence
from ...ops.reduce.running_extrema import CumMax, RunStart
from ...ops.shape.places import INT64
from ..kernels import Kernel

__all__ = ["banded", "largest", "recurrence", "run_start", "searched", "smallest"]


def largest(op: CumMax) -> Kernel:
    """XLA's own; bools as integers, which it has no order of."""
    return partial(_so_far, jax.lax.cummax, axis=op.axis)


def smallest(op: CumMax) -> Kernel:
    """The same of the smallest."""
    return partial(_so_far, jax.lax.cummin, axis=op.axis)


def _so_far(fn: Any, x: Any, axis: int) -> Any:
    if x.dtype == bool:
        return fn(x.astype("uint8"), axis).astype(bool)
    return fn(x, axis)


def run_start(op: RunStart) -> Kernel:
    """The kernel, with XLA's largest so far."""

    def run(x: Any) -> Any:
        return op.kernel(jnp, x, lambda y, axis: jax.lax.cummax(y, y.ndim + axis))

    return run


def searched(op: SearchSorted) -> Kernel:
    """By comparing with all, where there is no number of halvings."""

    def run(x: Any, v: Any) -> Any:
        if type(x.shape[0]) is int:
            return op.kernel(jnp, x, v)
        v = v[..., None]
        before = ~_less(v, x) if op.right else _less(x, v)
        return jnp.sum(before, axis=-1, dtype=INT64)

    return run


def _less(x: Any, y: Any) -> Any:
    """Which is before the other, NaN last."""
    return (x < y) | (jnp.isnan(y) & ~jnp.isnan(x))


def recurrence(op: Recurrence) -> Kernel:
    """The kernel, in a loop where there is no number of steps: each doubles the reach."""

    def run(b: Any, c: Any) -> Any:
        if type(b.shape[op.axis]) is int:
            return op.kernel(jnp, b, c)
        b, c = (jnp.moveaxis(x, op.axis, 0) for x in (b, c))
        n, back = b.shape[0], -1 if op.reverse else 1
        at = jnp.arange(n).reshape(-1, *[1] * (b.ndim - 1))

        def doubled(state: Any) -> Any:
            reach, b, c = state
            there = at - back * reach
            inside = (there >= 0) & (there < n)
            places = jnp.clip(there, 0, n - 1)
            reached = jnp.take_along_axis(b, places, 0)
            # products of c may overflow where there is nothing to multiply
            more = jnp.where(reached == 0, reached, c * reached)
            factor = c * jnp.take_along_axis(c, places, 0)
            return 2 * reach, jnp.where(inside, b + more, b), jnp.where(inside, factor, c)

        final = jax.lax.while_loop(lambda state: state[0] < n, doubled, (jnp.asarray(1), b, c))
        return jnp.moveaxis(final[1], 0, op.axis)

    return run


def banded(op: Banded) -> Kernel:
    """A step at a time, over what was made before."""

    def run(b: Any, *bands: Any) -> Any:
        n, back = b.shape[0], -1 if op.reverse else 1
        if n == 0:
            return b * 1

        def stepped(i: Any, y: Any) -> Any:
            t = n - 1 - i if op.reverse else i
            return y.at[t].set(op.step(jnp, b[t], y[t - back], [w[t] for w in bands]))

        return jax.lax.fori_loop(1, n, stepped, b)

    return run
