"""`heal`: a forward graph rebuilt by identities, before it is differentiated."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..base.errors import GraphError
from ..base.flags import truth
from ..base.lazy import lazy_module
from ..base.position import show
from ..base.tree import flatten, tree_map
from ..base.words import visible_lines
from ..differentiate.travel.transplant import Tensors, Transplant
from ..ir.build import build
from ..ir.graph import GraphScope
from ..ir.node import Graph, Node, Region, Tensor, enclosing
from ..ops.base import apply, constant
from ..ops.elementwise.exponential import LOG1P, log1p
from ..ops.elementwise.logic import WHERE
from ..ops.shape.reshaping import BroadcastTo, Reshape, broadcast_to, expand_dims, squeeze
from .forms import StableForm
from .guard import arguments, guarded, needs_guard
from .identity import RealIdentity, Rewriter
from .measuring import named, wrong_words
from .reading import Fit, OutputOf, is_real
from .shadow import lost_digits, shadow_values
from .table import rewriter as table
from .terms import ATOM, CALL, SUM, Term

__all__ = ["Healed", "HealedSite", "heal"]

_pages: Any = lazy_module("graphgrad.healing.page")

GUARD = "where"
LOSES = 2.0
"""Digits: what loses fewer at given feeds is left as it is."""
LEFT_ALONE = "left alone: marked"


class HealedSite(NamedTuple):
    """One rewrite: where it was built, by which identity, and why.

    where    the line of the user's
    name     of the identity
    written  what was written
    now      what it is now, or that it was left alone, and why
    wrong    what is wrong with what was written
    source   of the identity
    node     the node that computed it
    lost     decimal digits that are lost at the feeds `at`; None where none were given
    inputs   the tensors that what was written is a function of

    >>> x = gg.constant(1e200)
    >>> (site,) = gg.heal(gg.sqrt(x * x)).sites
    >>> site.written, site.now
    ('sqrt(x**2)', '|x|')
    """

    where: str
    name: str
    written: str
    now: str
    wrong: str
    source: str
    node: Node
    lost: float | None = None
    inputs: tuple[Tensor, ...] = ()


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
        where the file cannot be written.

        >>> import os
        >>> gg.heal(gg.tanh(gg.constant(1.0))).write_html(os.devnull)
        """
        write = _pages.write_panes if truth("panes", panes) else _pages.write_page
        write(path, self, title)

    def __repr__(self) -> str:
        done = [s for s in self.sites if s.now != LEFT_ALONE]
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
    """ys computed by stable forms of what was written, by identities of real functions.

    A transform of a forward graph, to be done before `gradients`: log(1 + exp(x)) becomes
    softplus(x), sqrt(sum(x * x)) a norm that neither over- nor underflows, and so on for each row
    of the table of docs/healing.md; the branches of `where` are kept from arguments at which they
    have no derivative. New nodes are built in the same graph, over the same inputs; the old ones
    stay. Values are equal as real functions where both are defined, and limits are filled.

    What is marked with a rule of its own, conditions, integers, stop_gradient, draws and bodies of
    control flow are left as they are.

    Parameters:
        ys: tensors of one graph, in any nesting.
        at: {tensor: array}, inputs at which the graph is run in 800 digits (by mpmath) beside
            float64: only what loses two digits or more there, in value or gradient, is rewritten.
            None: all that may lose.

    Returns: Healed: `.ys` with the structure of ys, `.sites`, and a table by `print`.

    Raises: GraphError for tensors of several graphs, and where ys are computed from gradients;
        TypeError for what is no tensor; for at, MissingBackendError without mpmath, and
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
    plan = HealingPlan(_forward(tensors))
    if at is not None:
        plan = plan.where_it_loses(at)
    with GraphScope(graph):
        made = HealedBuild(graph, plan)
        made.run(plan.to_build(tensors))
        healed = {y: made.tensors.get(y, y) for y in tensors}
    return Healed(
        tree_map(lambda y: None if y is None else healed[y], ys), tuple(plan.sites()), ys, at
    )


def naive_forms(nodes: Sequence[Node]) -> Iterator[tuple[Node, RealIdentity]]:
    """The nodes of a forward graph that identities would rewrite, and by which."""
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
            raise GraphError(f"{t.name} and {tensors[0].name} are of two graphs: heal each of them")
    graph: Graph = tensors[0].node.graph
    return graph


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
                f"heal() takes a graph before it is differentiated, and {node.name} ({node.where}) "
                "is part of a gradient: heal first, then take gradients of what healing made"
            )
        seen.add(node)
        stack += [t.node for t in node.inputs]
        stack += node.controls
    return sorted(seen, key=lambda node: node.index)


class HealingPlan:
    """What each node becomes, before anything is built.

    terms    node -> the term that stands for its output, where identities applied
    fired    node -> these identities
    marked   node -> the identity that was not applied, since a rule speaks for the node
    guards   choices of which a branch is kept from arguments that are not chosen
    changed  nodes that are built anew
    only     nodes that may be rewritten, and what they lose; None: all
    """

    def __init__(self, nodes: list[Node], only: Mapping[Node, float] | None = None) -> None:
        self.nodes = nodes
        self.only = only
        self.rewriter: Rewriter = table()
        self.terms: dict[Node, Term] = {}
        self.fired: dict[Node, list[RealIdentity]] = {}
        self.marked: dict[Node, RealIdentity] = {}
        self.guards: set[Node] = set()
        self.stands: dict[Term, Tensor] = {}
        for node in nodes:
            self._plan(node)
        self.changed = self._changed()

    def _plan(self, node: Node) -> None:
        reader, rewriter = self.rewriter.reader, self.rewriter
        reader.read(node)
        own = node.region is not None or node.stamp is not None
        for y in node.outputs:
            if not is_real(y):
                continue
            before = reader.loose(y)
            term, fired = rewriter.rewritten(before)
            if self.only is not None and node not in self.only:
                term, fired = before, []
            if fired and own:
                self.marked[node] = fired[0]
            elif fired and not _same(node, term, fired):
                self.terms[node] = term
                self.fired[node] = fired
            if own:
                term = reader.terms.atom(y)
            reader.of[y] = reader.shaped(term, y.shape)
            self.stands.setdefault(reader.of[y], y)
            self.stands.setdefault(term, y)
        lets = self.only is None or node in self.only
        if node.op is WHERE and not own and lets and needs_guard(node):
            self.guards.add(node)

    def where_it_loses(self, at: Mapping[Tensor, Any]) -> HealingPlan:
        """The plan that rewrites only what loses digits at feeds."""
        leaves = {node: self.leaves(node) for node in self.terms}
        wanted = dict.fromkeys([*at, *[t for ts in leaves.values() for t in ts]])
        known = shadow_values(self.nodes, list(wanted), at)
        losing: dict[Node, float] = {}
        for node, ts in leaves.items():
            lost = lost_digits(node.outputs[0], list(dict.fromkeys(ts)), known)
            if lost >= LOSES:
                within = self.within(node) & set(self.terms)
                losing.update({n: max(lost, losing.get(n, 0.0)) for n in within})
        for node in self.guards:
            lost = lost_digits(node.outputs[0], list(at), known)
            if lost >= LOSES:
                losing[node] = lost
        return HealingPlan(self.nodes, losing)

    def within(self, root: Node) -> set[Node]:
        """The nodes of what is written, from the leaves of its term to a rewritten node."""
        leaves = {t.node for t in self.leaves(root)}
        inside, stack = {root}, [root]
        while stack:
            new = {t.node for t in stack.pop().inputs} - leaves - inside
            inside |= new
            stack += new
        return inside

    def _changed(self) -> set[Node]:
        """Nodes that read what is rewritten; all of a region of which one does."""
        rebuilt: set[Region] = set()
        while True:
            changed: set[Node] = set()
            found = len(rebuilt)
            for node in self.nodes:
                around = enclosing(node.region)
                outermost = around[0] if around else None
                reads = any(t.node in changed and t.type.differentiable for t in node.inputs)
                lives = any(t.type.differentiable for t in node.outputs)
                if (
                    node in self.terms
                    or node in self.guards
                    or (lives and reads)
                    or outermost in rebuilt
                ):
                    changed.add(node)
                    if outermost is not None:
                        rebuilt.add(outermost)
            if len(rebuilt) == found:
                return changed

    def leaves(self, node: Node) -> list[Tensor]:
        """The tensors of which the term of a rewritten node is made."""
        found: list[Tensor] = []
        stack = [self.terms[node]]
        seen: set[Term] = set()
        while stack:
            term = stack.pop()
            if term in seen:
                continue
            seen.add(term)
            t = self.standing(term, node)
            if t is not None:
                found.append(t)
            elif term.kind == CALL:
                stack += term.parts
            else:
                stack += [part for part, _ in term.parts]
        return found

    def standing(self, term: Term, node: Node) -> Tensor | None:
        """The tensor whose term this is, if it was built before a node."""
        if term.kind == ATOM:
            return term.key  # type: ignore[no-any-return]
        t = self.stands.get(term)
        return t if t is not None and t.node.index < node.index else None

    def to_build(self, ys: Sequence[Tensor]) -> list[Node]:
        """The nodes that are built anew, as far as ys need them."""
        needed = {y.node for y in ys}
        for node in reversed(self.nodes):
            if node in needed and node in self.changed:
                reads = self.leaves(node) if node in self.terms else node.inputs
                needed.update(t.node for t in reads)
                needed.update(node.controls)
        region = {enclosing(n.region)[0] for n in needed & self.changed if n.region is not None}
        return [
            n
            for n in self.nodes
            if n in self.changed
            and (n in needed or (n.region and enclosing(n.region)[0] in region))
        ]

    def sites(self) -> Iterator[HealedSite]:
        """What was done, in the order of building."""
        for node in self.nodes:
            where, lost = show(node.position), None if self.only is None else self.only.get(node)
            for identity in self.fired.get(node, [])[:1]:
                i, inputs = identity, tuple(dict.fromkeys(self.leaves(node)))
                yield HealedSite(
                    where, i.name, i.written, i.now, i.wrong, i.source, node, lost, inputs
                )
            if node in self.marked:
                i = self.marked[node]
                yield HealedSite(
                    where, i.name, i.written, LEFT_ALONE, i.wrong, i.source, node, lost
                )
            if node in self.guards:
                yield HealedSite(
                    where, GUARD, "where(c, f(x), y)", "where(c, f(where(c, x, 1)), y)",
                    "0 times infinity in the gradient of what is not chosen",
                    "the double where of autodiff folklore", node, lost, arguments(node),
                )  # fmt: skip


def _same(node: Node, term: Term, fired: Sequence[RealIdentity]) -> bool:
    """Whether a node is already what it would become."""
    return node.op is LOG1P and term.kind == CALL and term.key is StableForm.of(log1p)


class HealedBuild(Transplant):
    """Builds in the graph what a plan says, beside what is there."""

    def __init__(self, graph: Graph, plan: HealingPlan) -> None:
        super().__init__(graph, {})
        self.plan = plan
        self.made: dict[Term, Tensor] = {}

    def outside(self, t: Tensor) -> Tensor:
        """What is not rewritten, as it is."""
        return t

    def place(self, node: Node, inputs: Tensors) -> Tensors:
        """The rewritten node, or the node on inputs of which some are rewritten."""
        start = len(self.graph.nodes)
        if node in self.plan.terms:
            outputs: Tensors = (
                self._fitted(self._make(self.plan.terms[node], node), node.outputs[0]),
            )
        elif node in self.plan.guards:
            outputs = (guarded(*inputs),)
        else:
            outputs = self.anew(node, inputs).outputs
        for new in self.graph.nodes[start:]:
            new.position = node.position
        return outputs

    def _fitted(self, made: Tensor, y: Tensor) -> Tensor:
        assert made.dtype is y.dtype, (made, y)
        return made if made.shape == y.shape else _reshaped(made, y.shape)

    def _get(self, term: Term, node: Node) -> Tensor:
        """The tensor of a term, which is made where there is none."""
        t = self.plan.standing(term, node)
        if t is not None:
            return self.tensor(t)
        made = self.made.get(term)
        if made is None:
            made = self.made[term] = self._make(term, node)
        return made

    def _make(self, term: Term, node: Node) -> Tensor:
        if term.kind == ATOM:
            return self.tensor(term.key)
        if term.kind == CALL:
            return self._call(term, node)
        if term.kind == SUM:
            return self._sum(term, node)
        made = None
        for base, e in sorted(term.parts, key=lambda part: part[1] < 0):
            x = self._get(base, node)
            if e < 0:
                below = x if e == -1 else x ** (-e)
                made = (1.0 / below) if made is None else made / below
            else:
                power = x if e == 1 else x**e
                made = power if made is None else made * power
        assert made is not None
        return made

    def _sum(self, term: Term, node: Node) -> Tensor:
        """The sum, of which what is added comes before what is taken away."""
        from_number = self._number(term.key, node)
        if not term.parts:
            return from_number
        made: Tensor | None = from_number if term.key > 0 else None
        for part, c in sorted(term.parts, key=lambda item: item[1] < 0):
            x = self._get(part, node)
            size = x if abs(c) == 1 else x * abs(c)
            if made is None:
                made = -size if c < 0 else size
            else:
                made = made - size if c < 0 else made + size
        assert made is not None
        return made - (-term.key) if term.key < 0 else made

    def _number(self, c: float, node: Node) -> Tensor:
        return constant(c, node.outputs[0].dtype)

    def _call(self, term: Term, node: Node) -> Tensor:
        key: Any = term.key
        if isinstance(key, Fit):
            return _reshaped(self._get(term.parts[0], node), key.shape)
        args = [self._get(t, node) for t in term.parts]
        if isinstance(key, StableForm):
            return key(*args)
        if isinstance(key, OutputOf):
            return build(key.op, tuple(args)).outputs[key.index]
        return apply(key, *args)


def _reshaped(x: Tensor, shape: Any) -> Tensor:
    """x with other axes of length 1, or broadcast."""
    if all(isinstance(d, int) for d in (*x.shape, *shape)):
        if _size(x.shape) == _size(shape):
            return apply(Reshape(tuple(shape)), x)
        return apply(BroadcastTo(tuple(shape)), x)
    ones = tuple([i for i, d in enumerate(x.shape) if d == 1])
    longer = [d for i, d in enumerate(x.shape) if i not in ones]
    if longer == [d for d in shape if d != 1]:
        return expand_dims(squeeze(x, ones), tuple([i for i, d in enumerate(shape) if d == 1]))
    return broadcast_to(x, shape)


def _size(shape: Any) -> int:
    n = 1
    for d in shape:
        n *= d
    return n
