"""Naive forms: formulas that lose what the function has, and masks where a choice belongs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..healing.heal import naive_forms
from ..healing.identity import RealIdentity
from ..healing.measuring import wrong_words
from ..ir.graph import Graph
from ..ir.node import Tensor
from .report import Finding

AT_0 = {
    **dict.fromkeys(("Sqrt", "Log", "Log2", "Log10", "Reciprocal"), 0),
    "Divide": 1,
}
"""Op types without a slope at 0 -> the place of the argument."""
VIEWS = ("Reshape", "BroadcastTo", "ExpandDims", "Squeeze", "Transpose")


def naive(graph: Graph) -> Iterator[Finding]:
    """Formulas that `gg.heal` knows a stable form of."""
    for node, identity in naive_forms([n for n in graph.nodes if n.origin is None]):
        yield Finding(
            "naive form",
            f"{identity.written}, which ends in {node.name}, loses accuracy: "
            f"{wrong_words(identity, node.outputs[0].dtype)}",
            node.where,
            f"Write {_stable(identity)}, or gg.heal(ys) before gg.gradients.",
        )


def _stable(identity: RealIdentity) -> str:
    """What to write: by its public name, where it is one function."""
    module = getattr(identity.stable, "__module__", "").split(".")
    if module[1:2] != ["ops"] or not re.fullmatch(r"\w+\([\w, ]+\)", identity.now):
        return identity.now
    room = f"{module[2]}." if module[2] in ("nn", "special", "linalg") else ""
    return f"gg.{room}{identity.now}"


def masked_arguments(graph: Graph) -> Iterator[Finding]:
    """Steps without a slope at 0 of what is multiplied by a mask, so that it is 0 where that is."""
    for node in graph.nodes:
        if node.type not in AT_0 or node.origin is not None or node.stamp or node.region:
            continue
        product = node.inputs[AT_0[node.type]].node
        if product.type == "Multiply" and any(map(_is_mask, product.inputs)):
            yield Finding(
                "masked argument",
                f"{node.type} ({node.name}) has no slope at 0, which is what {product.name} (built "
                f"at {product.where}) is wherever its mask is: the gradient is 0 times infinity "
                "there, NaN",
                node.where,
                "Choose instead of multiplying: gg.where(mask, f(gg.where(mask, x, 1.0)), 0.0); "
                "gg.heal adds the inner gg.where itself.",
            )


def _is_mask(t: Tensor) -> bool:
    """Whether it is a bool as a number, or a product of such."""
    node = t.node
    while node.type in VIEWS and len(node.inputs) == 1:
        node = node.inputs[0].node
    if node.type == "Multiply":
        return all(map(_is_mask, node.inputs))
    return node.type == "Cast" and node.inputs[0].dtype.kind == "b"
