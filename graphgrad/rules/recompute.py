"""Memory for time: what a part of the forward computation made is made again where it is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from itertools import pairwise
from math import isqrt
from typing import Any

import numpy as np

from ..differentiate.gradients import gradients
from ..differentiate.site import Site
from ..ir.context import Scope
from ..ir.errors import GradientError
from ..ir.graph import Graph, current
from ..ir.node import Tensor
from ..ir.residual import Residual
from ..ir.tree import flatten, unflatten
from ..ops.base import (
    NO_GRAD,
    Constant,
    Gradients,
    Node,
    Op,
    Samples,
    TensorType,
    Types,
    apply,
    as_tensor,
)
from ..ops.sources import identity
from ..regions.scopes import override_gradient
from .library import entry, rule

FAMILY = "recompute"


class After(Op):
    """y = x, once the other inputs are there; dx = dy, nothing for the others.

    What is computed from y is not the same as what was computed from x before, so no pass merges
    the two.
    """

    view = True

    def infer(self, x: TensorType, *others: TensorType) -> Types:
        """The type of x."""
        return (x,)

    def kernel(self, xp: Any, x: Any, *others: Any) -> Any:
        """X itself."""
        return x

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        """Dy for x."""
        return dy, *(NO_GRAD,) * (len(node.inputs) - 1)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        """With and without others."""
        yield cls(), [rng.normal(size=(2, 3)), rng.normal(size=())]
        yield cls(), [rng.normal(size=())]


class _Stamping(Scope):
    """Op-type maps as they were when a function was called first."""

    def __init__(self, stamps: Any) -> None:
        self.stamps = stamps

    def __enter__(self) -> None:
        context = current().copy()
        context.stamps = self.stamps
        self._push(context)

    def __exit__(self, *exc: object) -> None:
        self._pop()


@entry(FAMILY, "exact")
def checkpoint(fn: Callable[..., Any]) -> Callable[..., Any]:
    """fn, of which only the arguments are kept: its inside is computed again going backward.

    dxs = the gradient of fn, called once more on the arguments; random numbers have explicit
    seeds, so they are the same ones
    [Griewank and Walther 2000, "Algorithm 799: revolve"; Chen et al. 2016, "Training deep nets
    with sublinear memory cost"].
    """

    @wraps(fn)
    def call(*args: Any) -> Any:
        leaves = [as_tensor(a) for a in flatten(args)]
        stamps = current().stamps

        def checkpoint(site: Site, *dys: Tensor) -> Any:
            seeds = [dy for dy in dys if dy is not None]
            again = {x: apply(After(), x, *seeds) for x in leaves}
            graph = current().graph
            before = len(graph.nodes), len(graph.regions)
            with _Stamping(stamps):
                ys = flatten(fn(*unflatten(args, [again[x] for x in leaves])))
            chosen = _overrides_again(site, graph, *before)
            used = [identity(y) for y, dy in zip(ys, dys, strict=True) if dy is not None]
            xs = [again.get(x, x) for x in site.inputs]
            at = [x for x in xs if x.type.differentiable]
            found = iter(gradients(used, at, seeds, stop_gradients=at, overrides=chosen))
            return [next(found) if x.type.differentiable else NO_GRAD for x in xs]

        with override_gradient(rule(checkpoint, fn=fn)) as region:
            results = fn(*unflatten(args, leaves))
            outputs = [identity(y) for y in flatten(results)]
            region.declare(outputs=outputs)
        return unflatten(results, outputs)

    return call


def _overrides_again(site: Any, graph: Graph, node: int, region: int) -> dict[Any, Any]:
    """What the running gradients() call chose for the inside, on what was built in its place."""
    region_of = site.region
    new = [n for n in graph.nodes[node:] if _computes(n)]
    inside = [n for n in site.nodes if _computes(n)]
    inside = inside[: len(new)]  # without what stands for the results
    if [n.op.type for n in inside] != [n.op.type for n in new]:
        raise GradientError(
            f"{site!r} built other nodes when it was called again to recompute: "
            f"{len(new)} instead of {len(inside)}. A checkpointed function must be repeatable."
        )
    inner = [r for r in region_of.graph.regions if r is not region_of and region_of.contains(r)]
    twins: dict[Any, Any] = dict(zip(inside, new, strict=True))
    twins |= zip(inner, graph.regions[region:], strict=False)
    off = [s for s in site._sweep.off if s in twins]
    rules = {s: rule for s, rule in site._sweep.overrides.items() if s in twins}
    asked = current().asked
    if asked is not None:
        asked.update(off, rules)
    return dict.fromkeys([twins[s] for s in off]) | {twins[s]: r for s, r in rules.items()}


def _computes(node: Node) -> bool:
    return not node.op.source and not isinstance(node.op, Residual | Constant)


@entry(FAMILY, "exact")
def checkpoint_chain(
    fns: Sequence[Callable[[Any], Any]], x: Any, segments: int | None = None
) -> Any:
    """fns one after the other, in segments of which only the ends are kept: sqrt(n) by default.

    dx = the gradient of the chain; at most one segment's inside is in memory at a time
    [Chen et al. 2016, "Training deep nets with sublinear memory cost"].
    """
    count = segments or max(1, isqrt(len(fns)))
    bounds = [len(fns) * i // count for i in range(count + 1)]
    for first, last in pairwise(bounds):
        x = checkpoint(_one_after_the_other(fns[first:last]))(x)
    return x


def _one_after_the_other(fns: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def segment(x: Any) -> Any:
        for fn in fns:
            x = fn(x)
        return x

    return segment
