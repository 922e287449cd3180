"""Regions around what is built for the sake of a rule, a transform or a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ir.context import CONTEXT
from ..ir.node import Region, Tensor
from .boundary import take_in_pins

Pins = tuple[Sequence[Tensor], Sequence[Tensor]]


def region_around(build: Callable[[Region], Pins], rule: Any, **options: Any) -> Region:
    """A region with what `build(region)` builds in it: where it is called, and for its reason.

    build    returns the inputs and outputs that are its boundary
    options  as of Region
    """
    context = CONTEXT.get()
    region = Region(context.graph, rule, parent=context.region, origin=context.origin, **options)
    try:
        try:
            context.graph.regions.append(region)
            context.region = region
            inputs, outputs = build(region)
        finally:
            context.region, region.open = region.parent, False
    except BaseException:  # an interrupt of the line above, maybe
        context.region, region.open = region.parent, False
        raise
    region.pinned_inputs, region.pinned_outputs = tuple(inputs), tuple(outputs)
    take_in_pins(region)
    return region
