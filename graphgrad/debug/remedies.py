"""What to do about a step that makes NaN or infinity of finite values."""

from __future__ import annotations

from collections.abc import Iterator

from ..healing.advice import ADVICE
from ..healing.heal import healable
from ..ir.node import Node, Region, RuleCall


def remedies(step: Node | Region | RuleCall) -> Iterator[str]:
    """A line that says what heals a step, or else what to change in the model."""
    site = step.site if isinstance(step, RuleCall) else step
    if not isinstance(site, Node):
        return
    site = site.origin if isinstance(site.origin, Node) else site
    names = healable(site)
    if names:
        yield f"  healable: {', '.join(sorted(names))} (gg.heal, before gg.gradients)"
    elif site.type in ADVICE:
        yield f"  change: {ADVICE[site.type]}"
