"""Sites of tensors: regions without members, which stand between tensors and those who read them.

A site's rule gets the accumulated gradients of its tensors, before they are handed on, as if there
were a region of one identity for each that all other readers read. No node is built and no reader
is changed: that a read crosses the site follows from where it is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .node import Graph, Node, Region, RuleCall, Tensor
from .region_tree import RegionTree, sites_at


def note_site(site: Region) -> None:
    """Have the graph of a site of tensors know which tensors stand in it; twice is as good."""
    graph = site.graph
    for t in site.pinned_inputs or ():
        known = graph.sites.get(t, ())
        if site not in known:
            graph.sites[t] = (*known, site)


def note_sites(graph: Graph) -> None:
    """Have a graph know anew which tensors stand in sites: in the order of its regions."""
    graph.sites.clear()
    for region in graph.regions:
        if region.on_tensors:
            note_site(region)


def makes_sited(node: Node) -> bool:
    """Whether a tensor that a node makes stands in a site."""
    return any(map(sites_at, node.outputs))


def standing_around(t: Tensor, sites: Iterable[Region], tree: RegionTree) -> list[Region]:
    """What stands around what makes t, outermost first: the regions, and in each these sites.

    In a region, the sites are around the regions inside of which t is made: it is their output.
    """
    sites = list(sites)
    inside = tree.moved.get(t.node, t.node.region)
    standing = [s for s in sites if tree.around(s) is None]
    for region in tree.chain(inside):
        standing.append(region)
        standing += [s for s in sites if tree.around(s) is region]
    return standing


def crossed(
    t: Tensor, view: Region | None, sites: Sequence[Region], tree: RegionTree
) -> list[Region]:
    """The regions and sites that a read of t from inside `view` crosses, outermost first."""
    standing = standing_around(t, sites, tree)
    within = [i for i, r in enumerate(standing) if tree.holds(r, view)]
    return standing[max(within, default=-1) + 1 :]


def is_below(site: Region, origin: Node | RuleCall | None, t: Tensor, tree: RegionTree) -> bool:
    """Whether what has this origin reads t from below a site: it was derived from the site, from
    one that is nearer to what makes t, or from what makes t.
    """
    standing = standing_around(t, sites_at(t), tree)
    below = set(standing[standing.index(site) :])
    while origin is not None:
        step = origin.site if isinstance(origin, RuleCall) else origin
        if step is t.node or step in below:
            return True
        origin = step.origin
    return False
