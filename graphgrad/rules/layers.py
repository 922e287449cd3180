"""How relevance meets a layer: its parts, what they have of it, what its bias keeps."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.errors import GradientError
from ..differentiate.gradients import gradients
from ..differentiate.site import Site
from ..ir.node import Tensor
from .ledger import Ledger
from .sites import Layer, layer


def in_shares(z: Tensor, xs: Sequence[Tensor], dz: Tensor) -> list[Tensor]:
    """What each x has of the relevance of z, which is linear in the xs; dz is R / z."""
    slopes = gradients(z, list(xs), dz, unconnected="zero", overrides={})
    return [x * slope for x, slope in zip(xs, slopes, strict=True)]


def carrying_layer(site: Site, book: Ledger) -> Layer:
    """The parts of a layer, x being what carries relevance; GradientError where both carry."""
    part = layer(site)
    if not book.asks or not book.carries(part.w):
        return part
    if book.carries(part.x):
        raise GradientError(
            f"this rule is for a layer with weights, but both factors of {site!r} carry relevance: "
            "use gg.rules.lrp_product() there, or the rule that relevance() has for it"
        )
    return part._replace(x=part.w, w=part.x, flipped=not part.flipped)


def keep_bias(book: Ledger, bias: Tensor | None, dz: Tensor) -> None:
    """Note what a bias has of relevance."""
    if bias is not None and book.counts:
        book.keep(book.biases, dz * bias)
