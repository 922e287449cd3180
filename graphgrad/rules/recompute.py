"""Memory for time: what a part of the forward computation made is made again where it is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from itertools import pairwise
from math import comb, isqrt
from typing import Any

from ..differentiate.gradients import gradients
from ..differentiate.site import Site
from ..ir.errors import GradientError
from ..ir.graph import Graph, current
from ..ir.groups import holds
from ..ir.node import Tensor
from ..ir.residual import Residual
from ..ir.tree import flatten, unflatten
from ..ops.base import NO_GRAD, Constant, Node, apply, as_tensor
from ..ops.sequencing import After
from ..ops.sources import identity
from ..regions.index import marked_regions
from ..regions.scopes import OnBehalf, maps_in_force, override_gradient
from ..regions.select import select
from .library import entry, rule

FAMILY = "recompute"
MOST = 40


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
        maps = [each.copied(open=True) for each in maps_in_force()]

        def checkpoint(site: Site, *dys: Tensor) -> Any:
            seeds = [dy for dy in dys if dy is not None]
            again = {x: apply(After(), x, *seeds) for x in leaves}
            graph = current().graph
            before = len(graph.nodes), len(graph.regions)
            with OnBehalf(maps):
                ys = flatten(fn(*unflatten(args, [again[x] for x in leaves])))
            chosen = _overrides_again(site, graph, *before)
            used = [identity(y) for y, dy in zip(ys, dys, strict=True) if dy is not None]
            xs = [again.get(x, x) for x in site.inputs]
            at = [x for x in xs if x.type.differentiable]
            found = iter(gradients(used, at, seeds, stop_gradients=at, overrides=chosen))
            return [next(found) if x.type.differentiable else NO_GRAD for x in xs]

        with override_gradient(rule(checkpoint, fn=fn), allow_empty=True) as region:
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
    marked = marked_regions(region_of.graph)
    inner = [r for r in marked if r is not region_of and region_of.contains(r)]
    again = [r for r in graph.regions[region:] if r.group is None]
    twins: dict[Any, Any] = dict(zip(inside, new, strict=True))
    named = _groups_again(site, twins)
    twins |= zip(inner, again, strict=False)
    twins |= named
    call, asked = current().choice, current().asked
    found: dict[Any, Any] = {}
    for step, twin in twins.items() if call is not None else ():
        if step in call.off or step in call:
            found[twin] = None if step in call.off else call.get(step)
            if asked is not None:
                asked.add(step)
    return found


def _groups_again(site: Any, twins: dict[Any, Any]) -> dict[Any, Any]:
    """The groups inside that the call names, and what selects their nodes among the new ones."""
    groups = current().groups
    found: dict[Any, Any] = {}
    for region in groups.regions if groups is not None else ():
        if region is not site.region and holds(site.region, region, groups):
            assert region.group is not None
            nodes = {t.node for t in region.group.tensors}
            found[region] = select.nodes(*(twins[n] for n in nodes if n in twins))
    return found


def _computes(node: Node) -> bool:
    return not node.op.source and not isinstance(node.op, Residual | Constant)


@entry(FAMILY, "exact")
def checkpoint_chain(
    fns: Sequence[Callable[[Any], Any]],
    x: Any,
    segments: int | None = None,
    snapshots: int | None = None,
) -> Any:
    """fns one after the other, of which only some values between them are kept.

    dx = the gradient of the chain, from values that are computed again
    [Griewank and Walther 2000, "Algorithm 799: revolve"; Chen et al. 2016, "Training deep nets
    with sublinear memory cost"].

    segments: the ends of so many are kept, and the inside of one at a time; sqrt(n) by default.
        Every function but those of the last segment runs once more.
    snapshots: so many values are kept at most, x among them. Functions run `forward_steps(n,
        snapshots)` times beside once each, which is the least possible.
    """
    if segments is not None and snapshots is not None:
        raise GradientError("checkpoint_chain() takes segments or snapshots, not both")
    if snapshots is not None:
        return _revolve(fns, snapshots)(x)
    count = segments or max(1, isqrt(len(fns)))
    bounds = [len(fns) * i // count for i in range(count + 1)]
    for first, last in pairwise(bounds[:-1]):
        x = checkpoint(_one_after_the_other(fns[first:last]))(x)
    return _one_after_the_other(fns[bounds[-2] :])(x)


def _one_after_the_other(fns: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def segment(x: Any) -> Any:
        for fn in fns:
            x = fn(x)
        return x

    return segment


def _revolve(fns: Sequence[Callable[[Any], Any]], snapshots: int) -> Callable[[Any], Any]:
    """The chain, cut again and again: what stands before a cut is computed once more, from its
    start, with all of the snapshots; what stands after it has one fewer.
    """
    parts: list[Callable[[Any], Any]] = []
    while len(fns) > 1:
        cut = _cut(len(fns), snapshots)
        parts.append(checkpoint(_revolve(fns[:cut], snapshots)))
        fns, snapshots = fns[cut:], snapshots - 1
    return _one_after_the_other([*parts, *fns])


def forward_steps(length: int, snapshots: int) -> int:
    """How often functions of a chain run to be reversed with so many values kept, x among them,
    beside once for each to differentiate it: r * length - C(snapshots + r, r - 1), where r is the
    least with length <= C(snapshots + r, r).
    """
    r = _repetitions(length, snapshots)
    return r * length - (comb(snapshots + r, r - 1) if r else 0)


def _repetitions(length: int, snapshots: int) -> int:
    """The most often that a function of the chain has to run before it is differentiated.

    GradientError for MOST and more: each is a rule that is called within the one before.
    """
    if snapshots < 1:
        raise GradientError(f"a chain is reversed from at least 1 snapshot, got {snapshots}")
    if comb(snapshots + MOST - 1, MOST - 1) < length:
        raise GradientError(
            f"with {snapshots} snapshots a chain of {length} functions runs some of them {MOST} "
            "times and more; give more snapshots"
        )
    r = 0
    while comb(snapshots + r, r) < length:
        r += 1
    return r


def _cut(length: int, snapshots: int) -> int:
    """Where the first snapshot after x is best taken."""
    r = _repetitions(length, snapshots)
    after = comb(snapshots + r - 2, r - 1)  # what needs one repetition less, with one snapshot less
    return max(1, min(comb(snapshots + r - 1, r - 1), length - after))
