"""How a node is named in a finding: what, where, in which region, by which rule."""

from __future__ import annotations

import numpy as np

from ..base.kinds import is_floating, is_inexact
from ..base.words import visible
from ..ir.node import Node, Region, RuleCall, enclosing
from ..ir.types import Array


def who(node: Node) -> str:
    """`exp (Exp, built at model.py:12, in region 'ste' (model.py:11))`, or what it derives from."""
    origin = node.origin
    if origin is None:
        text = f"{node.name} ({node.type}, built at {node.where}"
    else:
        text = f"{node.name} ({node.type}, {derivation(origin)}"
    region = node.region
    if region is not None:
        text += f", in region {region.name!r} ({region.where})"
    return visible(text + ")")


def derivation(origin: Node | RuleCall) -> str:
    """What a derived node was built for."""
    if isinstance(origin, RuleCall):
        target = origin.site
        kind = "region" if isinstance(target, Region) else "node"
        return visible(
            f"in the backward pass: rule {origin.rule!r} for {kind} {target.name!r} "
            f"({target.where})"
        )
    within = regions_of(origin)
    inside = f", in region {within[-1].name!r} ({within[-1].where})" if within else ""
    return visible(
        f"in the backward pass of {origin.name} ({origin.type}, {_where(origin)}{inside})"
    )


def _where(node: Node) -> str:
    """The user's line of a node, or of what it derives from in the end."""
    for _ in range(1000):
        origin = node.origin
        if origin is None:
            break
        target = origin.site if isinstance(origin, RuleCall) else origin
        if isinstance(target, Region):
            return f"region at {target.where}"
        node = target
    return str(node.where)


def regions_of(node: Node) -> list[Region]:
    """The regions around a node, the outermost first."""
    return list(enclosing(node.region))


def described(array: Array) -> str:
    """`float64[3, 4], 2 nan, 1 inf, finite values from -1 to 710`."""
    array = np.asarray(array)
    text = f"{array.dtype}[{', '.join(map(str, array.shape))}]"
    if not is_inexact(array.dtype) or not array.size:
        return text if not array.size else f"{text} from {array.min()} to {array.max()}"
    nans, infs = int(np.isnan(array).sum()), int(np.isinf(array).sum())
    counts = [f"{n} {what}" for n, what in ((nans, "nan"), (infs, "inf")) if n]
    finite = array[np.isfinite(array)]
    if finite.size and is_floating(array.dtype):
        prefix = "finite values " if counts else ""
        counts.append(f"{prefix}from {finite.min():.6g} to {finite.max():.6g}")
    return ", ".join([text, *counts])
