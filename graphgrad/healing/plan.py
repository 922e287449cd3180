"""What `heal` is to do: which nodes become what, before anything is built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple, TypeAlias

from ..base.errors import RegionError
from ..base.position import show
from ..compiled import evaluate
from ..differentiate.healed import form_of
from ..ir.node import Node, Region, Tensor, enclosing
from ..ir.op import Op
from ..ir.region_tree import sites_at
from ..ir.tensor_sites import makes_sited
from ..ops.elementwise.arithmetic import Divide, Multiply
from ..ops.elementwise.exponential import LOG1P, log1p
from ..ops.elementwise.logic import WHERE, where
from ..ops.sources import Placeholder, Variable
from .forms import StableForm
from .guard import arguments, needs_guard
from .identity import RealIdentity, Rewriter
from .reading import is_real
from .shadow import lost_digits, shadow_values
from .spectral import Spectral, spectral
from .table import rewriter as table
from .terms import ATOM, CALL, SUM, Term

LOSES = 2.0
"""Digits: what loses fewer at given feeds is left as it is."""
LEFT_ALONE = "left alone: "
MARKED = f"{LEFT_ALONE}marked"
DERIVED = f"{LEFT_ALONE}in a body that takes gradients"
NOT_RUN = f"{LEFT_ALONE}in a body, for which at= has no values"
NOT_NEEDED = f"{LEFT_ALONE}used only by a condition or a step function"
GUARD = RealIdentity(
    "where",
    "regimes",
    "where(c, f(x), y) -> where(c, f(where(c, x, 1)), y)",
    "0 times infinity in the gradient of the branch not chosen",
    "the double where of autodiff folklore",
    where,
    where,
)
"""What is said of branches of a choice."""


Pieces: TypeAlias = tuple[list[tuple[Tensor, float]], list[tuple[Term, float]], float]
"""Tensors and terms, with factors, and a number: what is added up."""


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
    same     what is computed in it once more -> the one of inputs that it is equal to

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
    same: Mapping[Tensor, Tensor] = {}


class HealingPlan:
    """What each node becomes, before anything is built.

    terms    node -> the term that stands for its output, where identities applied
    fired    node -> these identities
    alone    node -> the identity that was not applied, since a rule speaks for the node
    guards   choices of which a branch is kept from arguments that are not chosen
    spectral products by eigenvectors or singular vectors, which are functions of their matrix
    inner    node with bodies -> what is to be done in each of them, where anything is to be built
    marked   nodes with a rule of their own
    changed  nodes that are to be built anew
    built    those of them that ys need; all nodes, where nothing is to be built
    only     nodes that may be rewritten, and what they lose; None: all
    unmarked whether marks count for nothing: for a look into a region
    """

    def __init__(
        self,
        nodes: list[Node],
        ys: Sequence[Tensor] | None = None,
        only: Mapping[Node, float] | None = None,
        unmarked: bool = False,
    ) -> None:
        self.nodes, self.ys, self.only, self.unmarked = nodes, ys, only, unmarked
        self.rewriter: Rewriter = table()
        self.terms: dict[Node, Term] = {}
        self.fired: dict[Node, list[RealIdentity]] = {}
        self.alone: dict[Node, RealIdentity] = {}
        self.guards: set[Node] = set()
        self.spectral: dict[Node, Spectral] = {}
        self.inner: dict[Node, list[HealingPlan]] = {}
        self.stands: dict[Term, Tensor] = {}
        self._sums: dict[Node, list[tuple[Term, Tensor]]] = {}
        self.marked: set[Node] = set()
        for node in nodes:
            self._plan(node)
        self.changed = self._changed()
        self.built = nodes if ys is None else self._to_build(ys)

    def _plan(self, node: Node) -> None:
        reader, rewriter = self.rewriter.reader, self.rewriter
        form = form_of(node)
        if form is not None and form.name:
            reader.of.update((y, reader.terms.atom(y)) for y in node.outputs)
            return
        reader.read(node)
        own = not self.unmarked and (
            node.region is not None or node.stamp is not None or makes_sited(node)
        )
        for y in node.outputs:
            if not is_real(y):
                continue
            before = reader.loose(y)
            term, fired = rewriter.rewritten(before)
            if not fired:
                term, fired = self._cancelled(node, term)
            built, ended = rewriter.rewritten(term, last=True)
            fired += ended
            if self.only is not None and node not in self.only:
                term, fired = before, []
            if fired and own:
                self.alone[node] = fired[0]
            elif fired and not _same(node, term):
                self.terms[node], self.fired[node] = built, fired
                if self.marked and not self.marked.isdisjoint(self.within(node)):
                    del self.terms[node]
                    self.alone[node] = self.fired.pop(node)[0]
                    term = before
            if own:
                self.marked.add(node)
                term = reader.terms.atom(y)
            reader.of[y] = reader.shaped(term, y)
            self.stands.setdefault(reader.of[y], y)
            self.stands.setdefault(term, y)
        lets = self.only is None or node in self.only
        found = spectral(node) if lets and not own else None
        if found is not None:
            self.spectral[node] = found
        if node.op is WHERE and lets and not own and needs_guard(node):
            self.guards.add(node)
        if node.op.bodies and self.ys is not None:
            self.inner[node] = [HealingPlan(list(b.nodes), b.outputs) for b in node.op.bodies]

    def _cancelled(self, node: Node, term: Term) -> tuple[Term, list[RealIdentity]]:
        """What is left of a product with something rewritten, of which factors cancel."""
        of = [i for t in node.inputs for i in self.fired.get(t.node, ())]
        if not of or type(node.op) not in (Multiply, Divide):
            return term, []
        terms, reader = self.rewriter.terms, self.rewriter.reader
        x, y = [reader.loose(t) for t in node.inputs]
        made = terms.multiply([(x, 1), (y, 1 if type(node.op) is Multiply else -1)], loose=True)
        if terms.size(made) == terms.size(x) + terms.size(y):
            return term, []
        return made, of[:1]

    def heals_within(self, node: Node) -> bool:
        """Whether something in the bodies of a node is rewritten."""
        return self._why_not_within(node) is None and any(p.built for p in self.inner[node])

    def _why_not_within(self, node: Node) -> str | None:
        if node.region is not None or node.stamp is not None:
            return MARKED
        if any(n.origin is not None for plan in self.inner[node] for n in plan.nodes):
            return DERIVED
        return None if self.only is None else NOT_RUN

    def where_it_loses(self, at: Mapping[Tensor, Any]) -> HealingPlan:
        """The plan that rewrites only what loses digits at feeds."""
        inputs = {node: self.inputs_of(node) for node in self.terms}
        wanted = dict.fromkeys([*at, *[t for ts, _ in inputs.values() for t in ts]])
        known = shadow_values(self.nodes, list(wanted), at)
        losing: dict[Node, float] = {}
        for node, (ts, same) in inputs.items():
            lost = lost_digits(node.outputs[0], ts, known, same)
            if lost >= LOSES:
                within = self.within(node) & set(self.terms)
                losing.update({n: max(lost, losing.get(n, 0.0)) for n in within})
        for node in self.guards:
            lost = lost_digits(node.outputs[0], list(at), known, {})
            if lost >= LOSES:
                losing[node] = lost
        for node, found in self.spectral.items():
            lost = found.lost(evaluate(found.values, at))
            if lost >= LOSES:
                losing[node] = lost
        return HealingPlan(self.nodes, self.ys, losing)

    def within(self, root: Node) -> set[Node]:
        """The nodes of what is written, from the leaves of its term to a rewritten node."""
        leaves = {t.node for t in self.leaves(root)}
        inside, stack = {root}, [root]
        while stack:
            new = {t.node for t in stack.pop().inputs} - leaves - inside
            inside |= new
            stack += new
        return inside

    def inputs_of(
        self, root: Node, identity: RealIdentity | None = None
    ) -> tuple[list[Tensor], dict[Tensor, Tensor]]:
        """The tensors that what is written is a function of, and what is equal to one of them.

        They are the leaves of its term; where it reaches past them, as sin(x - y) / (y - x) does
        past x - y, what they are computed from.
        """
        if identity is GUARD:
            return self._apart(arguments(root), ())
        if root not in self.terms:
            return [], {}
        inside = [t for n in self.within(root) - {root} for t in n.outputs]
        inputs, same = self._apart(self.leaves(root), inside)
        while free := _sources(root.outputs, {*inputs, *same}) - {*inputs, *same}:
            kept = [x for x in inputs if free.isdisjoint(_sources([x], free))]
            inputs = [*kept, *sorted(free, key=lambda t: t.node.index)]
            same = {t: x for t, x in same.items() if x in kept}
        return inputs, same

    def _apart(
        self, ts: Sequence[Tensor], others: Sequence[Tensor]
    ) -> tuple[list[Tensor], dict[Tensor, Tensor]]:
        """Tensors of different terms, and what has the term of one of them."""
        first: dict[Any, Tensor] = {}
        keys = {t: (self.rewriter.reader.loose(t), t.shape) for t in (*ts, *others)}
        for t in ts:
            first.setdefault(keys[t], t)
        same = {t: first[key] for t, key in keys.items() if key in first}
        return [*first.values()], {t: x for t, x in same.items() if t is not x}

    def _changed(self) -> set[Node]:
        """Nodes that read what is rewritten; all of a region of which one does."""
        rebuilt: set[Region] = set()
        rewritten = {
            *self.terms,
            *self.guards,
            *self.spectral,
            *filter(self.heals_within, self.inner),
        }
        while True:
            changed: set[Node] = set()
            found = len(rebuilt)
            for node in self.nodes:
                outermost = closed_around(node)
                reads = any(t.node in changed for t in smooth_inputs(node))
                if node in rewritten or reads or outermost in rebuilt:
                    changed.add(node)
                    if outermost is not None:
                        rebuilt.add(outermost)
            if len(rebuilt) == found:
                return changed

    def leaves(self, node: Node, sums: bool = False) -> list[Tensor]:
        """The tensors of which the term of a rewritten node is made; sums, as they were written."""
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
                continue
            if sums and term.kind == SUM:
                written, rest, _ = self.as_written(term, node)
                found += [t for t, _ in written]
                stack += [part for part, _ in rest]
                continue
            stack += term.parts if term.kind == CALL else [part for part, _ in term.parts]
        return found

    def as_written(self, term: Term, root: Node) -> Pieces:
        """What a sum is made of: sums in the formula of a node, with factors, and what is left.

        Of x - y + log(z) it is x - y, where that was written: nothing is added in another order.
        """
        matcher = self.rewriter.matcher
        found: list[tuple[Tensor, float]] = []
        left, const = self.rewriter.terms.addends(term)
        rest = dict(left)
        for s, t in self._sums_in(root) if len(rest) + bool(const) > 1 else ():
            part, c = s.parts[0]
            factor = rest.get(part, 0.0) / c
            less = matcher.without(rest, const, s, factor) if factor else None
            if less is not None and not (s.key and less[1]):
                found.append((t, factor))
                rest, const = less
        return found, [*rest.items()], const

    def _sums_in(self, root: Node) -> list[tuple[Term, Tensor]]:
        """The sums in what is written, the longest first."""
        known = self._sums.get(root)
        if known is None:
            pairs = [
                (self.rewriter.reader.loose(t), t)
                for n in self.within(root) - {root}
                for t in n.outputs
            ]
            known = self._sums[root] = sorted(
                [
                    (s, t)
                    for s, t in pairs
                    if s.kind == SUM and len(s.parts) + bool(s.key) > 1 and s.shape == t.shape
                ],
                key=lambda item: (-len(item[0].parts), item[1].node.index),
            )
        return known

    def standing(self, term: Term, node: Node) -> Tensor | None:
        """The tensor whose term this is, if it was built before a node."""
        if term.kind == ATOM:
            return term.key  # type: ignore[no-any-return]
        t = self.stands.get(term)
        return t if t is not None and t.node.index < node.index else None

    def _to_build(self, ys: Sequence[Tensor]) -> list[Node]:
        needed = {y.node for y in ys}
        for node in reversed(self.nodes):
            if node in needed and node in self.changed:
                if node in self.spectral:
                    needed.add(self.spectral[node].x.node)
                    continue
                whole = closed_around(node) is not None
                reads = list(node.inputs) if whole else smooth_inputs(node)
                reads = self.leaves(node, sums=True) if node in self.terms else reads
                needed.update(t.node for t in reads)
                needed.update(node.controls)
        for node in filter(makes_sited, needed & self.changed):
            site = next(s for t in node.outputs for s in sites_at(t))
            raise RegionError(
                f"heal() would rebuild {node.name} ({node.where}), whose output is in the site of "
                f"tensors {site!r}, so the rule of the site would be lost.\n"
                "Heal before the tensors are marked, or unmark them."
            )
        regions = {closed_around(n) for n in needed & self.changed} - {None}
        return [
            n
            for n in self.nodes
            if n in self.changed and (n in needed or closed_around(n) in regions)
        ]

    def sites(self, why_not: str | None = None) -> Iterator[HealedSite]:
        """What was done, in the order of building; why_not: nothing was."""
        built = set(self.built)
        if not built.issuperset(self.fired):  # some are part of what others rewrite
            built.update(*[self.within(node) for node in self.fired if node in built])
        within = {n for node, s in self.spectral.items() if node in built for n in s.inside}
        regions = {} if self.unmarked or self.only is not None else by_region(self.nodes)
        for node in self.nodes:
            if node in within and node not in built:
                continue
            why = why_not or (None if node in built else NOT_NEEDED)
            if node in self.fired:
                yield self._site(node, self.fired[node][0], why)
            if node in self.alone:
                yield self._site(node, self.alone[node], MARKED)
            if node in regions:
                plain = HealingPlan(regions[node], unmarked=True)
                yield from (s for s in plain.sites(MARKED) if s.node not in self.alone)
            if node in self.spectral:
                yield self._site(node, self.spectral[node].identity, why)
            if node in self.guards:
                yield self._site(node, GUARD, why)
            for plan in self.inner.get(node, ()):
                yield from plan.sites(self._why_not_within(node) or why)

    def _site(self, node: Node, i: RealIdentity, why_not: str | None) -> HealedSite:
        lost = None if self.only is None else self.only.get(node)
        now = why_not or i.now
        inputs, same = self.inputs_of(node, i)
        return HealedSite(
            show(node.position), i.name, i.written, now, i.wrong, i.source, node, lost,
            tuple(inputs), same,
        )  # fmt: skip


def closed_around(node: Node) -> Region | None:
    """The outermost region around a node that was left."""
    if node.region is None:
        return None
    return next((region for region in enclosing(node.region) if not region.open), None)


def by_region(nodes: Sequence[Node]) -> dict[Node, list[Node]]:
    """The members of each outermost region, by the first of them."""
    found: dict[Region, list[Node]] = {}
    for node in nodes:
        if node.region is not None:
            found.setdefault(enclosing(node.region)[0], []).append(node)
    return {members[0]: members for members in found.values()}


def smooth_inputs(node: Node) -> list[Tensor]:
    """The inputs on whose last bits the outputs depend smoothly: no conditions, no steps."""
    op: Op = node.op
    if op.traits.stepwise or not any(t.type.differentiable for t in node.outputs):
        return []
    jumps = op.derivative.jumps
    return [t for i, t in enumerate(node.inputs) if i not in jumps and t.type.differentiable]


def _sources(ts: Sequence[Tensor], stops: Set[Tensor]) -> set[Tensor]:
    """The placeholders and variables, and the stops, that tensors are computed from by the rest."""
    found: set[Tensor] = set()
    seen, stack = set(ts), list(ts)
    while stack:
        t = stack.pop()
        if t in stops or isinstance(t.node.op, Placeholder | Variable):
            found.add(t)
            continue
        new = dict.fromkeys(t.node.inputs).keys() - seen
        seen |= new
        stack += new
    return found


def _same(node: Node, term: Term) -> bool:
    """Whether a node is already what it would become."""
    return node.op is LOG1P and term.kind == CALL and term.key is StableForm.of(log1p)
