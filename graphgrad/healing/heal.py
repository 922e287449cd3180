"""`heal`: a forward graph rebuilt by identities, before it is differentiated."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..base.errors import GraphError, ShapeError
from ..base.flags import truth
from ..base.kinds import can_cast
from ..base.lazy import lazy_module
from ..base.tree import flatten, tree_map
from ..base.words import visible_lines
from ..ir.node import Graph, Node, Tensor
from ..ir.types import Array
from .building import healed as built
from .identity import RealIdentity
from .measuring import named, wrong_words
from .plan import LEFT_ALONE, HealedSite, HealingPlan

__all__ = ["Healed", "HealedSite", "heal"]

_pages: Any = lazy_module("graphgrad.healing.page")


class Healed:
    """What `heal` made; `print` it for a table.

    ys       tensors that stand for those that were given, in their structure
    sites    a HealedSite for each rewrite, in the order of building
    written  the tensors that were given
    at       the feeds that were given, {} for none

    >>> x = gg.constant(1e200)
    >>> healed = gg.heal(gg.sqrt(x * x))
    >>> healed, float(gg.evaluate(healed.ys))
    (<healed: 1 rewritten, 0 left alone>, 1e+200)
    """

    def __init__(
        self,
        ys: Any,
        sites: tuple[HealedSite, ...],
        written: Any = None,
        at: Mapping[Tensor, Any] | None = None,
    ) -> None:
        self.ys, self.sites, self.written, self.at = ys, sites, written, dict(at or {})

    def write_html(
        self, path: str | os.PathLike[str], *, title: str = "", panes: bool = False
    ) -> None:
        """Write a page about every rewrite: how many digits were right before, and how many now.

        One file that opens offline: for each site the line, what was written and what it is now,
        from where to where that was wrong, and the correct digits of value and gradient along each
        input, over all exponents, by many digits. Where `heal` was given feeds, these are marked.

        Parameters:
            path: the file, which is replaced.
            title: default: how many formulas were rewritten.
            panes: write the page of gg.write_html instead, with the graph as it was written and the
                healed one side by side.

        Returns: nothing.

        Raises: MissingBackendError without mpmath, which the graph alone does not need; OSError
        where the file cannot be written; TypeError for a title that is no str.

        >>> import os
        >>> gg.heal(gg.tanh(gg.constant(1.0))).write_html(os.devnull)
        """
        if not isinstance(title, str):
            raise TypeError(f"title is a str, got {title!r}")
        write = _pages.write_panes if truth("panes", panes) else _pages.write_page
        write(path, self, title)

    def __repr__(self) -> str:
        done = [s for s in self.sites if not s.now.startswith(LEFT_ALONE)]
        return f"<healed: {len(done)} rewritten, {len(self.sites) - len(done)} left alone>"

    def __str__(self) -> str:
        if not self.sites:
            return "nothing to heal"
        rows = [("line", "written", "now", "known by")]
        rows += [(s.where, s.written, s.now, f"{s.name}: {s.source}") for s in self.sites]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = ["  ".join([*(c.ljust(w) for c, w in zip(row, widths)), row[3]]) for row in rows]
        for i, site in reversed([*enumerate(self.sites, 2)]):
            lines.insert(i, f"{' ' * widths[0]}  {_because(site)}")
        return visible_lines("\n".join(lines))


def _because(site: HealedSite) -> str:
    """What is wrong, from where in the dtype, and what is lost at feeds."""
    identity = named(site.name)
    dtype = site.node.outputs[0].dtype
    wrong = wrong_words(identity, dtype, 1) if identity is not None else site.wrong
    return wrong if site.lost is None else f"{wrong}; {site.lost:.0f} digits are lost"


def heal(ys: Any, at: Mapping[Tensor, Any] | None = None) -> Healed:
    """Rewrite the formulas of ys in numerically stable forms.

    Call it on a forward graph, before `gradients`: log(1 + exp(x)) becomes softplus(x), sqrt(sum(x
    * x)) becomes a norm that neither overflows nor underflows, and so on for each row of the table
    in docs/healing.md. Branches of `where` are not evaluated at arguments at which they have no
    derivative. New nodes are built in the same graph, from the same inputs; the old ones stay.
    Wherever both forms are defined they are equal for real numbers, and removable singularities get
    their limits.

    Formulas with their own rules, conditions, steps, integers, stop_gradient and random draws do
    not change; with `at`, bodies of control flow do not change either.

    Parameters:
        ys: tensors in one graph, in any nesting.
        at: {tensor: array}, inputs for which the graph runs both in float64 and in 800 digits (with
            mpmath); only formulas whose value or gradient loses two digits or more are rewritten,
            and products of eigenvectors only if eigenvalues are that close to each other. None: all
            formulas that may lose digits.

    Returns: Healed: `.ys` with the structure of ys, `.sites`, and a table by `print`.

    Raises: GraphError for tensors of several graphs, and where ys are computed from gradients;
        TypeError for input that is not a tensor; for at, MissingBackendError without mpmath, and
        ExecutionError for a node that has no value in many digits.

    >>> x = gg.constant(1000.0)
    >>> healed = gg.heal(gg.log(gg.exp(x)) ** 2)
    >>> gg.evaluate([healed.ys, gg.gradients(healed.ys, x)])
    [array(1000000.), array(2000.)]
    >>> [site.name for site in healed.sites]
    ['log_of_product']
    """
    tensors = [y for y in flatten(ys) if y is not None]
    graph = _graph_of(tensors)
    plan = HealingPlan(_forward(tensors), tensors)
    if at is not None:
        plan = plan.where_it_loses(_feeds(at, graph))
    healed = dict(zip(tensors, built(graph, plan, tensors), strict=True))
    return Healed(
        tree_map(lambda y: None if y is None else healed[y], ys), tuple(plan.sites()), ys, at
    )


def naive_forms(nodes: Sequence[Node]) -> Iterator[tuple[Node, RealIdentity]]:
    """The nodes of a forward graph that identities would rewrite, and by which; not in bodies."""
    plan = HealingPlan(sorted(nodes, key=lambda node: node.index))
    yield from ((node, fired[0]) for node, fired in plan.fired.items())


def healable(node: Node) -> set[str]:
    """The identities that would rewrite a naive form of which a node of a forward graph is part."""
    if node.graph is None:
        return set()
    plan = HealingPlan([n for n in node.graph.nodes if n.origin is None])
    found: set[str] = set()
    for root, fired in plan.fired.items():
        if node in plan.within(root):
            found.update(i.name for i in fired)
    return found


def _graph_of(tensors: Sequence[Any]) -> Graph:
    if not tensors:
        raise TypeError("heal() takes tensors, got none")
    for t in tensors:
        if not isinstance(t, Tensor) or t.node.graph is None:
            raise TypeError(f"heal() takes tensors, got {t!r}")
        if t.node.graph is not tensors[0].node.graph:
            raise GraphError(
                f"{t.name} and {tensors[0].name} are in different graphs: heal each graph "
                "separately"
            )
    graph: Graph = tensors[0].node.graph
    return graph


def _feeds(at: Any, graph: Graph) -> Mapping[Tensor, Any]:
    """What is fed, once it is sure that it can be."""
    if not isinstance(at, Mapping):
        raise TypeError(f"heal(at=...) takes a dict of tensors and arrays, got {at!r}")
    for t, value in at.items():
        if not isinstance(t, Tensor) or t.graph is not graph:
            raise GraphError(
                f"heal(at=...) takes tensors of the graph that is healed as keys, got {t!r}"
            )
        array = np.asarray(value)
        fits = array.ndim == t.ndim and all(
            d == n or not isinstance(d, int) for d, n in zip(t.shape, array.shape)
        )
        if not fits or not _is_fed_as(array, t):
            raise ShapeError(
                f"heal(at=...) feeds {t.name} ({t.type!r}, built at {t.node.where}) with an array "
                f"of shape {array.shape} and dtype {array.dtype}"
            )
    return at


def _is_fed_as(array: Array, t: Tensor) -> bool:
    """Whether an array is of numbers of the kind of a tensor's."""
    return array.dtype.kind in "biufcV" and can_cast(array.dtype, t.dtype, "same_kind")


def _forward(ys: Sequence[Tensor]) -> list[Node]:
    """What ys are computed by, inputs first; GraphError where that is a gradient."""
    seen: set[Node] = set()
    stack = [y.node for y in ys]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        if node.origin is not None:
            raise GraphError(
                f"heal() takes a graph before it is differentiated, and {node.name} "
                f"({node.where}) is part of a gradient: heal first, then take gradients of the "
                "healed tensors"
            )
        seen.add(node)
        stack += [t.node for t in node.inputs]
        stack += node.controls
    return sorted(seen, key=lambda node: node.index)
