"""A rule with its own jvp, in forward mode: a region from dys to dxs whose own rule is that jvp.

The rule itself is not called. The values of the region are never read: its gradient, which is the
transpose that forward mode takes, is what the jvp gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.build import build, read_here
from ...ir.graph import current
from ...ir.node import Node, Region, Tensor
from ...ir.op import Gradients, Op, Samples, Types
from ...ir.types import TensorType
from ...ops.base import NO_GRAD, ZERO
from ...ops.batching import Batch, Outputs
from ...regions.opening import Pins, region_around
from ...regions.rules import Rule
from ..call import Calling
from ..question import knowing
from ..site import Site

PIECE = "jvp"
"""The kind of a region that stands in place of a rule with its own jvp."""


def marked_piece(rule: Rule, dys: Sequence[Tensor], xs: Sequence[Tensor]) -> list[Any]:
    """A region from dys to gradients of xs. Its values are never read, only its rule counts."""
    xs = read_here(tuple(xs))
    reals = [x for x in xs if x.type.differentiable]

    def inside(region: Region) -> Pins:
        return dys, build(Unread(len(reals), len(dys)), (*reals, *dys)).outputs

    made = iter(region_around(inside, rule, kind=PIECE).pinned_outputs or ())
    return [next(made) if x.type.differentiable else NO_GRAD for x in xs]


class Unread(Op):
    """Zeros like the first `count` inputs, made of `given` others: gradients that nobody reads.

    The inside of such a region. Only its region's rule counts, and the lengths of what it makes.
    """

    count: int
    given: int
    flop_free = True

    @property
    def linear(self) -> tuple[int, ...]:  # type: ignore[override]
        """In what is given; the others are read for their shapes."""
        return tuple(range(self.count, self.count + self.given))

    def infer(self, *types: TensorType) -> Types:
        """Those of the first inputs."""
        return types[: self.count]

    def kernel(self, xp: Any, *arrays: Any) -> Any:
        """Zeros."""
        zeros = tuple([xp.zeros_like(a) for a in arrays[: self.count]])
        return zeros[0] if self.count == 1 else zeros

    def vjp(self, node: Node, *dys: Tensor) -> Gradients:
        """Nothing flows."""
        return [ZERO] * len(node.inputs)

    def batch(self, batch: Batch) -> Outputs:
        """Zeros of every example."""
        return batch.build(self, *batch.every())

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        """One, and two."""
        yield cls(1, 1), [rng.normal(size=(2, 3)), rng.normal(size=(4,))]
        yield cls(2, 1), [rng.normal(size=(2,)), rng.normal(size=()), rng.normal(size=(3,))]


def jvp_as_rule(call: Calling, real: Sequence[bool]) -> Callable[..., list[Any]]:
    """The rule of such a region: the user's jvp, from tangents of inputs to tangents of outputs."""
    site = call.site

    def transpose(_: Site, *dxs: Any) -> list[Any]:
        supply = iter(dxs)
        given = [next(supply) if x.type.differentiable else None for x in site.inputs]
        with knowing(running=(*current().answering.running, site._target)):
            entries = call.tangents(given)
        return [entry for entry, here in zip(entries, real, strict=True) if here]

    return transpose
