"""What an identity is, and how a term is rewritten by identities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from inspect import signature
from itertools import combinations
from typing import Any, TypeAlias

from ..ir.graph import Graph
from ..ir.node import Tensor
from ..ops.elementwise.logic import WHERE
from ..ops.sources import placeholder
from .forms import StableForm
from .matching import Bound, Matcher
from .reading import Reader
from .terms import ATOM, CALL, PRODUCT, SUM, CancelsError, Term, Terms

PEEPHOLE, REGIMES, SCALING, CLOSED = KINDS = ("peephole", "regimes", "scaling", "closed form")
"""How an identity makes a form stable.

peephole     another formula for the same function
regimes      several, each where it is accurate, under a double where; a series around 0
scaling      f(x) = s**k f(x / s) with s = max |x| held fixed
closed form  the derivative is a formula of its own
"""

Rule: TypeAlias = Callable[["Rewriter", Term], "Term | None"]
PLAIN = 3  # a stable form of so few ops is seen through by other identities
AGAIN = 30  # times that one term may be rewritten


Ranges: TypeAlias = Sequence[tuple[float, float]]


@dataclass(eq=False, repr=False)
class RealIdentity:
    """An identity of real functions: one row of the table.

    name     by which it is known
    kind     one of KINDS
    algebra  `log(1 + exp(x)) -> softplus(x)`
    wrong    where the naive one is wrong, in words
    source   where the stable form is from
    naive    the function that is matched, of tensors; for a rule an instance of what it rewrites
    stable   what it becomes, of the same tensors
    ranges   for each argument the numbers between which both are defined
    rule     what matches where a pattern cannot say it: sums of any length, axes
    shapes   the shapes of the arguments; scalars if there are none
    last     whether what it rewrites is still read as that by other identities
    partial  whether it may be some of the terms of a longer sum
    """

    name: str
    kind: str
    algebra: str
    wrong: str
    source: str
    naive: Callable[..., Tensor]
    stable: Callable[..., Any]
    ranges: Ranges = ()
    rule: Rule | None = None
    shapes: tuple[tuple[int, ...], ...] = ()
    last: bool = False
    partial: bool = False
    arity: int = field(init=False)

    def __post_init__(self) -> None:
        self.arity = len(signature(self.naive).parameters)
        self.shapes = self.shapes or ((),) * self.arity
        self.ranges = tuple(self.ranges) or ((-float("inf"), float("inf")),) * self.arity

    @property
    def written(self) -> str:
        """What it rewrites."""
        return self.algebra.partition(" -> ")[0]

    @property
    def now(self) -> str:
        """What that becomes."""
        return self.algebra.partition(" -> ")[2]

    def __repr__(self) -> str:
        return f"<{self.kind} identity {self.name}: {self.algebra}>"


class TermPattern:
    """An identity that is matched by what its naive function builds."""

    def __init__(self, identity: RealIdentity, before: Rewriter) -> None:
        graph = Graph()
        with graph:
            xs = [placeholder(shape, dtype="float64") for shape in identity.shapes]
            atoms = [before.reader.term(x) for x in xs]
            naive = read_all(before, graph, identity.naive(*xs))
        self.atoms, self.terms = atoms, before.terms
        self.term, self.scale = before.terms.monomial(naive)
        self.head = self.term.key if self.term.kind == CALL else self.term.kind
        self.template = _template(before, graph, identity, xs)
        self.form = StableForm.of(identity.stable)
        self.of_arrays, self.partial = any(identity.shapes), identity.partial

    def __call__(self, rewriter: Rewriter, term: Term) -> Term | None:
        """What a term becomes that is an instance of it."""
        whole = self._whole(rewriter, term)
        if whole is not None or not self.partial or term.kind != SUM:
            return whole
        for some in combinations(term.parts, len(self.term.parts)):
            made = self._whole(rewriter, rewriter.terms.add(some, term.key if self.term.key else 0))
            if made is not None:
                rest = [part for part in term.parts if part not in some]
                left = 0.0 if self.term.key else term.key
                return rewriter.terms.add([(made, 1.0), *rest], left, loose=True)
        return None

    def _whole(self, rewriter: Rewriter, term: Term) -> Term | None:
        for m in rewriter.matcher.whole(self.term, term):
            if any(atom not in m.bound for atom in self.atoms):
                continue
            terms = rewriter.terms
            if self.template is None:
                shape = term.shape if self.of_arrays else None
                made = terms.call(self.form, *[m.bound[a] for a in self.atoms], shape=shape)
            else:
                made = substituted(terms, self.template, m.bound)
            scale = m.scale / self.scale**m.power
            return terms.multiply([(made, m.power), *m.rest], scale, loose=True)
        return None


def _template(
    before: Rewriter, graph: Graph, identity: RealIdentity, xs: list[Tensor]
) -> Term | None:
    """The term of the stable form, where it is short and has no choice in it."""
    if any(identity.shapes):
        return None
    start = len(graph.nodes)
    with graph:
        y = identity.stable(*xs)
    nodes = [n for n in graph.nodes[start:] if n.inputs]
    own = any(n.op is WHERE or not n.op.elementwise or n.region is not None for n in nodes)
    if len(nodes) > 2 * PLAIN or own:
        return None
    for node in graph.nodes[start:]:
        before.reader.read(node)
    return before.reader.loose(y)


def substituted(terms: Terms, template: Term, bound: Bound) -> Term:
    """A template of another arena with terms for its atoms."""
    if template.kind == ATOM:
        return bound[template]
    if template.kind == CALL:
        return terms.call(template.key, *[substituted(terms, t, bound) for t in template.parts])
    parts = [(substituted(terms, t, bound), c) for t, c in template.parts]
    if template.kind == SUM:
        return terms.add(parts, template.key, loose=True)
    return terms.multiply(parts, loose=True)


class Rewriter:
    """Rewrites terms by identities until none applies.

    by_head  what a term calls, or its kind -> the identities for it, in the order of the table
    fitting  (that, what is called in a term) -> those of them that may apply
    by       the name of the row that a rule of several rows applied
    table    another one, whose identities are its own
    """

    def __init__(self, table: Rewriter | None = None) -> None:
        self.reader = Reader()
        self.terms = self.reader.terms
        self.matcher = Matcher(self.terms)
        self.by_head: dict[Any, list[tuple[RealIdentity, Rule]]] = table.by_head if table else {}
        self.fitting: dict[Any, list[tuple[RealIdentity, Rule]]] = {}
        self.by: str | None = None

    def put(self, identity: RealIdentity, rule: Rule, heads: tuple[Any, ...]) -> None:
        """Take an identity in."""
        for head in heads:
            self.by_head.setdefault(head, []).append((identity, rule))
        self.fitting.clear()

    def rewritten(self, term: Term, last: bool = False) -> tuple[Term, list[RealIdentity]]:
        """What a term becomes, and by which identities: by those that come last, or the others."""
        fired: list[RealIdentity] = []
        seen = {term}
        while len(fired) < AGAIN:
            inner, c = self.terms.monomial(term)
            made = self._once(inner, fired, last)
            if made is None:
                break
            term = self.terms.scaled(made, c)
            if term in seen:
                break
            seen.add(term)
        return term, fired

    def _once(self, term: Term, fired: list[RealIdentity], last: bool) -> Term | None:
        if term.kind == ATOM:
            return None
        head = term.key if term.kind == CALL else term.kind
        fitting = self.fitting.get((head, term.calls, last))
        if fitting is None:
            fitting = self.fitting[head, term.calls, last] = self._fitting(head, term, last)
        for identity, rule in fitting:
            self.by = None
            try:
                made = rule(self, term)
            except CancelsError:
                continue
            if made is not None and made is not term:
                rows = self.by_head.get(head, []) + self.by_head.get(type(head), [])
                named = [i for i, _ in rows if i.name == self.by]
                fired.append(named[0] if named else identity)
                return made
        return None

    def _fitting(self, head: Any, term: Term, last: bool) -> list[tuple[RealIdentity, Rule]]:
        """Each rule once that may apply to a term that calls what this one does."""
        found: dict[Rule, RealIdentity] = {}
        for identity, rule in self.by_head.get(head, []) + self.by_head.get(type(head), []):
            fits = not isinstance(rule, TermPattern) or rule.term.calls <= term.calls
            if fits and identity.last is last:
                found.setdefault(rule, identity)
        return [(identity, rule) for rule, identity in found.items()]


def read_all(rewriter: Rewriter, graph: Graph, y: Tensor) -> Term:
    """The term of y, with every node of a graph rewritten."""
    reader = rewriter.reader
    for node in graph.nodes:
        if node.inputs:
            reader.read(node)
            for t in node.outputs:
                term, _ = rewriter.rewritten(reader.loose(t))
                reader.of[t] = reader.shaped(term, t)
    return reader.loose(y)


def heads_of(pattern: TermPattern) -> tuple[Any, ...]:
    """What a term calls, or its kind, that may be an instance of a pattern."""
    return (SUM, PRODUCT) if pattern.head == SUM else (pattern.head,)
