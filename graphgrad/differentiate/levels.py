"""Which step answers for a read: the tensor's own producer, or a region it lies in."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Protocol

from ..base.errors import GradientError
from ..ir.node import Node, Region, Tensor
from ..ir.region_tree import MARKED, RegionTree
from ..ir.tensor_sites import crossed
from ..regions.boundary import settled_boundary

Key = Tensor | tuple[Tensor, Region]
Step = Node | Region


class Off(Protocol):
    """The regions and nodes whose mark does not count in a question: a frozenset, or Switched."""

    def __contains__(self, step: object, /) -> bool: ...

    def __or__(self, steps: AbstractSet[Step], /) -> Off: ...


def built_from(step: Step) -> Step:
    """What a step was built from once more: a choice is for that. Else the step itself."""
    return step if step.graph is None else step.graph.again.get(step, step)


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
        remedy = (
            "Declare it with `region.declare(outputs=[...])` in the block, build it outside, or "
            "say escape='default' to use the inside's own derivative for it."
        )
        if region.group is not None:
            remedy = (
                "Name a group of other nodes in overrides=, or graph.mark() this one, with "
                "outputs=[...] or escape='default'. A derivative that was taken without this "
                "override reads the inside: take it with the same overrides too."
            )
        return GradientError(
            f"{what} {t.name} (built at {t.where}), which {read}is hidden inside region "
            f"{region.name!r} ({region.where}): the region's rule applies to its outputs only, "
            f"which are {shown(settled_boundary(region).outputs)}.\n"
            f"{remedy}"
        )


def level(
    t: Tensor, view: Region | None, off: Off, tree: RegionTree = MARKED
) -> Region | Hidden | None:
    """What answers for t when it is read from inside `view`: a region, None (its producer), Hidden.

    off: regions that count as unmarked in this question; tree: those there are in it.
    """
    node = t.node
    inside = tree.moved.get(node, node.region)
    graph = node.graph
    if graph is not None and graph.sites and (sites := graph.sites.get(t)):
        between: Iterable[Region] = crossed(t, view, sites, tree)
    elif inside is None or inside is view:
        return None
    else:
        between = tree.between(view, inside)
    for region in between:
        if region in off:
            continue
        if t in settled_boundary(region).output_set or region.on_tensors:
            return region
        if region.escape == "default":
            continue
        return Hidden(t, region)
    return None


def key_of(t: Tensor, view: Region | None, off: Off, tree: RegionTree = MARKED) -> Key:
    """Where the gradient of a read accumulates; a hidden read counts as its producer's."""
    owner = level(t, view, off, tree)
    return (t, owner) if isinstance(owner, Region) else t


def shown(items: Iterable[Tensor | Step]) -> str:
    """Names with their lines."""
    return ", ".join(f"{item.name} ({item.where})" for item in items) or "none"
