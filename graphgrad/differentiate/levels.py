"""Which step answers for a read: the tensor's own producer, or a region it lies in."""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.errors import GradientError
from ..ir.node import Node, Region, Tensor, enclosing
from ..regions.boundary import boundary_of

Key = Tensor | tuple[Tensor, Region]
Step = Node | Region


class Hidden:
    """A read of a tensor that its region does not show."""

    __slots__ = ("region", "tensor")

    def __init__(self, tensor: Tensor, region: Region) -> None:
        self.tensor = tensor
        self.region = region

    def error(self, what: str, reader: Step | None = None) -> GradientError:
        """The error, with what to do about it."""
        t, region = self.tensor, self.region
        read = f"{reader.name} ({reader.where}) reads and which " if reader is not None else ""
        return GradientError(
            f"{what} {t.name} (built at {t.where}), which {read}is hidden inside region "
            f"{region.name!r} ({region.where}): the region's rule speaks for its outputs only, "
            f"which are {shown(boundary_of(region).outputs)}.\n"
            "Declare it with `region.declare(outputs=[...])` in the block, build it outside, or "
            "say escape='default' to use the inside's own derivative for it."
        )


def level(t: Tensor, view: Region | None, off: frozenset[Step]) -> Region | Hidden | None:
    """What answers for t when it is read from inside `view`: a region, None (its producer), Hidden.

    off: regions that count as unmarked in this question.
    """
    inside = t.node.region
    if inside is None or inside is view:
        return None
    for region in enclosing(inside):
        if region in off or region.contains(view):
            continue
        if t in boundary_of(region).output_set:
            return region
        if region.escape == "default":
            continue
        return Hidden(t, region)
    return None


def key_of(t: Tensor, view: Region | None, off: frozenset[Step]) -> Key:
    """Where the gradient of a read accumulates; a hidden read counts as its producer's."""
    found = level(t, view, off)
    return (t, found) if isinstance(found, Region) else t


def shown(items: Iterable[Tensor | Step]) -> str:
    """Names with their lines."""
    return ", ".join(f"{item.name} ({item.where})" for item in items) or "none"
