"""Which inputs of a site what its rule returned is for, and where nobody answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..base.errors import GradientError
from ..ir.node import Region, Tensor, enclosing
from ..ir.residual import Residual, derived_from
from ..ops.base import ZeroTensor
from ..ops.control import BodyGraph
from ..regions.rules import Rule
from .levels import shown
from .site import RegionSite, Site


def connected(
    site: Site,
    x: Tensor,
    dx: Tensor,
    dys: Sequence[Tensor | None],
    given: Sequence[Tensor | None],
    start: int,
) -> bool:
    """Whether x leads to an output in use, or its entry depends on a gradient in use.

    given  the gradients as the rule got them
    """
    if not isinstance(site, RegionSite) or site.region.pinned_inputs is not None:
        return True
    if _leads(site, x, dys):
        return True
    return _depends(dx, {d for d, dy in zip(given, dys, strict=True) if dy is not None}, start)


def _leads(site: RegionSite, x: Tensor, dys: Sequence[Tensor | None]) -> bool:
    """Whether x leads to an output in use."""
    bits = site.boundary.reach(x)
    return any(bits >> i & 1 for i, dy in enumerate(dys) if dy is not None)


def _depends(dx: Tensor, on: set[Tensor | None], start: int) -> bool:
    """Whether dx was computed from one of these, by nodes built from `start` on."""
    if dx in on:
        return True
    if isinstance(dx, ZeroTensor):
        return False
    seen = {dx.node}
    stack = [dx.node]
    while stack:
        for t in stack.pop().inputs:
            if t in on:
                return True
            if t.node not in seen and t.node.index >= start:
                seen.add(t.node)
                stack.append(t.node)
    return False


def check_undeclared(
    rule: Rule, site: Site, entries: Iterable[tuple[Tensor, Any]], dys: Sequence[Tensor | None]
) -> None:
    """GradientError where a gradient would have to flow through a tensor nobody declared."""
    if not isinstance(site, RegionSite) or not site.boundary.undeclared:
        return
    answered = {x for x, _ in entries}
    for t in site.boundary.undeclared:
        if (
            t not in answered
            and site.reads_live(t)
            and _leads(site, t, dys)
            and not _spoken_for(t, site.region)
            and not site.is_spare(t)
        ):
            readers = [n for n in site.nodes if any(t is x for x in n.inputs)]
            raise GradientError(
                f"{site!r} reads {t.name} ({t.type!r}, built at {t.where}), which is not among "
                f"its inputs, in {shown(readers)}, and a gradient has to flow through it.\n"
                f"Make it an input, return a mapping {{input: gradient}} from {rule.name!r} that "
                "has an entry for it (for a variable: a grad_fn with a `variables` argument), or "
                "gg.stop_gradient it first."
            )


def _spoken_for(t: Tensor, region: Region) -> bool:
    """Whether t is hidden in the region whose rule opened this one: then its rule speaks for t."""
    while isinstance(t.graph, BodyGraph) and (home := t.graph.home_of(t)) is not None:
        t = home
    op = t.node.op
    return isinstance(op, Residual) and any(
        derived_from(around, region.origin, t.node.inputs[0]) for around in enclosing(op.region)
    )
