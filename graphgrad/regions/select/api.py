"""`gg.select`: how selections are made, narrowed and asked."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

from ...base.errors import GraphError, RegionError
from ...base.tree import flatten
from ...ir.graph import Graph
from ...ir.node import Node, Region, Tensor
from ..scopes import opaque_among
from .combined import Both, Either, Regrouped, Rest, WithDerived
from .hints import check_op_type, names_near, no_hint, scopes_near
from .kinds import Between, Derived, Itself, Listed, Matching, OfSources, OfType, Ruled
from .pattern import Pattern, check_form
from .targets import Kind, Target, covered, is_in, pool

__all__ = ["Selection", "select"]


class Selector:
    """`gg.select`: how selections are made. On a selection each of these narrows it further.

    Matching looks at the nodes that the user built and that have inputs, bodies of control flow
    included: sources and constants have no gradient to override, and derived nodes are seen after
    `.backward()` only.

    >>> x = gg.constant([1.0, -1.0])
    >>> with gg.name_scope("enc"):
    ...     y = gg.exp(gg.nn.relu(x))
    >>> [node.type for node in gg.select.name("enc/*").op("Relu").find(x.graph)]
    ['Relu']
    """

    def op(self, *types: str) -> Selection:
        """Select the nodes of these op types, each as a separate site.

        Parameters: *types: such as "Relu".

        Returns: a Selection.

        Raises: RegionError for an unknown op type, or one without inputs.

        >>> x = gg.constant(1.0)
        >>> y = gg.exp(gg.sin(x))
        >>> [node.type for node in gg.select.op("Sin", "Cos").find(x.graph)]
        ['Sin']
        """
        types = tuple(dict.fromkeys(types))
        for op_type in types:
            check_op_type(op_type)
        return self._chosen(OfType(types))

    def name(self, *patterns: str) -> Selection:
        """The nodes whose name matches a shell pattern, each a site of its own.

        Parameters: *patterns: such as "enc/*".

        Returns: a Selection.

        >>> with gg.name_scope("enc"):
        ...     y = gg.exp(gg.constant(1.0))
        >>> [node.name for node in gg.select.name("enc/*").find(y.graph)]
        ['enc/Exp_1']
        """

        def matches(node: Node) -> bool:
            return any(fnmatchcase(node.name, p) for p in patterns)

        return self._chosen(Matching("name", patterns, matches, names_near(patterns), fixed=True))

    def where(self, predicate: Callable[[Node], Any]) -> Selection:
        """Select the nodes for which predicate(node) is true, each as a separate site.

        Parameters: predicate: a function of a Node.

        Returns: a Selection.

        >>> y = gg.sum(gg.exp(gg.constant([1.0, 2.0])))
        >>> [n.type for n in gg.select.where(lambda n: n.outputs[0].ndim == 0).find(y.graph)]
        ['ReduceSum']
        """
        return self._chosen(Matching("where", (predicate,), lambda n: bool(predicate(n)), no_hint))

    def nodes(self, *nodes: Any) -> Selection:
        """These very nodes, as one region.

        Parameters: *nodes: nodes, or tensors, which stand for their producers.

        Returns: a Selection.

        Raises: RegionError for something else.

        >>> x = gg.variable(2.0)
        >>> h = x * x
        >>> y = gg.exp(h)
        >>> (region,) = x.graph.mark(gg.select.nodes(h, y), lambda site, dy: 7 * dy)
        >>> gg.evaluate(gg.gradients(y, x))
        array(7.)
        """
        return self._chosen(Listed(tuple(_node_of(n) for n in flatten(list(nodes)))))

    def between(self, xs: Any, ys: Any) -> Selection:
        """The nodes on paths from xs to ys, as one region.

        The producers of ys are in it, those of xs are not. Constants that only it reads join it
        when it is marked.

        Parameters: xs, ys: tensors, or any nesting of list, tuple and dict of them.

        Returns: a Selection.

        Raises: RegionError for anything but tensors.

        >>> x = gg.variable(2.0)
        >>> y = gg.exp(x * x)
        >>> chosen = gg.select.between(x, y)
        >>> gg.evaluate(gg.gradients(y, x, overrides={chosen: gg.rules.scale(0.0)}))
        array(0.)
        """
        return self._chosen(Between(_tensors(xs, "xs"), _tensors(ys, "ys")))

    def scope(self, name: str) -> Selection:
        """Select all nodes in a name scope, as one region.

        Parameters: name: such as "model/enc".

        Returns: a Selection.

        >>> x = gg.variable(2.0)
        >>> with gg.name_scope("enc"):
        ...     y = gg.exp(x * x)
        >>> gg.evaluate(gg.gradients(y, x, overrides={gg.select.scope("enc"): gg.rules.scale(0.0)}))
        array(0.)
        """
        prefix = name.strip("/") + "/"
        matching = Matching(
            "scope", (name,), lambda n: n.name.startswith(prefix), scopes_near(name), fixed=True
        )
        return self._chosen(Regrouped(matching, together=True, shown=repr(matching)))

    def pattern(self, form: Any) -> Selection:
        """Each place where the nodes have this structure, as one region.

        A form is read from outputs to inputs:

        "Exp"                  a node of that type, whatever it reads
        ("Add", form, form)    a node of that type whose inputs, in this order and number, match
                               the forms; a last `...` stands for any further inputs
        None                   any tensor; its producer is no part of the match
        "?x"                   any tensor, the same one wherever the form says "?x"

        So ("Log", ("Add", "Constant", "Exp")) is log(c + exp(any)). The order of inputs counts; say
        `pattern(a) | pattern(b)` for both. Matches that share a node are all found, and are an
        error where they are marked: two rules cannot speak for one node.

        >>> x = gg.variable(2.0)
        >>> y = gg.log(1.0 + gg.exp(x))
        >>> form = ("Log", ("Add", "Constant", ("Exp", "?x")))
        >>> (region,) = x.graph.mark(gg.select.pattern(form), gg.rules.log1pexp())
        >>> region.name
        'log1pexp()'
        """
        check_form(form)
        return self._chosen(Pattern(form))

    def rule(self, rule: Any) -> Selection:
        """The regions, and the nodes of op-type maps, that are marked with a rule or its name.

        Parameters: rule: a name, a callable or a rule object.

        Returns: a Selection.

        >>> x = gg.constant(0.3)
        >>> y = gg.override("Identity")(gg.tanh)(x)
        >>> gg.select.rule("Identity").find(x.graph)[0] is y.node.region
        True
        """
        return self._chosen(Ruled(rule))

    def variables(self, *patterns: str) -> Selection:
        """Select the trainable variables, for `graph.mark(..., together=True)`.

        Parameters: *patterns: shell patterns of their names, such as "enc/*"; none: all of them.

        Returns: a Selection.

        >>> w, b = gg.variable(3.0, name="w"), gg.variable(4.0, name="b")
        >>> y = w * w / 2 + b * b / 2
        >>> clip = gg.rules.clip_global_norm(limit=1.0)
        >>> (site,) = y.graph.mark(gg.select.variables(), clip, together=True)
        >>> gg.evaluate(gg.gradients(y, [w, b]))
        [array(0.6), array(0.8)]
        """
        return self._chosen(OfSources("variables", patterns))

    def inputs(self, *patterns: str) -> Selection:
        """The floating and complex placeholders, for `graph.mark(..., together=True)`.

        In what was opened of a function of JAX, the parameters are among them.

        Parameters: *patterns: shell patterns of their names, such as "w*"; none: all of them.

        Returns: a Selection.

        >>> w = gg.placeholder((), name="w")
        >>> [node.name for node in gg.select.inputs().find(w.graph)]
        ['w']
        """
        return self._chosen(OfSources("inputs", patterns))

    def backward(self) -> Selection:
        """On `gg.select`: the derived nodes, each a site of its own. On a selection: see there."""
        return self._chosen(Derived())

    def _chosen(self, kind: Kind) -> Selection:
        return Selection(kind)


class Selection(Selector):
    """What a mark or an override is for. It asks the graph anew wherever it is used.

    a & b   what a selects, of which b selects every node (of a group: those nodes)
    a | b   both
    ~a      the nodes that a does not select, each a site of its own

    >>> x = gg.constant([1.0, -1.0])
    >>> y = gg.exp(gg.nn.relu(x))
    >>> stop_both = {gg.select.op("Relu") | gg.select.op("Exp"): gg.rules.scale(0.0)}
    >>> gg.evaluate(gg.gradients(y, x, overrides=stop_both))
    array([0., 0.])
    """

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def each(self) -> Selection:
        """Every node a site of its own; a region that was selected as such stays one.

        >>> x = gg.constant(2.0)
        >>> with gg.name_scope("enc"):
        ...     y = gg.exp(gg.sin(x))
        >>> [node.type for node in gg.select.scope("enc").each().find(x.graph)]
        ['Sin', 'Exp']
        """
        return Selection(Regrouped(self.kind, together=False))

    def together(self) -> Selection:
        """All the nodes as one region."""
        return Selection(Regrouped(self.kind, together=True))

    def backward(self) -> Selection:
        """The same among all nodes, those that gradients() built included."""
        return Selection(WithDerived(self.kind))

    def __and__(self, other: Any) -> Selection:
        return Selection(Both(self.kind, as_selection(other).kind))

    def __rand__(self, other: Any) -> Selection:
        return Selection(Both(as_selection(other).kind, self.kind))

    def __or__(self, other: Any) -> Selection:
        return Selection(Either(self.kind, as_selection(other).kind))

    def __ror__(self, other: Any) -> Selection:
        return Selection(Either(as_selection(other).kind, self.kind))

    def __invert__(self) -> Selection:
        return Selection(Rest(self.kind))

    def find(self, graph: Graph, *, lenient: bool = False) -> list[Target]:
        """What it selects in a graph and the bodies of its control flow, maybe nothing.

        Parameters:
            graph: where to look.
            lenient: whether what it names may be somewhere else.

        Returns: a list of nodes, regions and groups of nodes.

        Raises: GraphError for what it names that is not there, unless lenient.
        """
        for what in () if lenient else self._named():
            if not is_in(what, graph):
                raise GraphError(
                    f"{what!r} is selected, which is not in {graph!r} but in {what.graph!r}"
                )
        return self.kind._find(graph, False)

    def _named(self) -> list[Node | Region | Tensor]:
        """What its kind and the parts of that name as objects."""
        objects: list[Node | Region | Tensor] = []
        stack = [self.kind]
        while stack:
            part = stack.pop()
            objects += part.names
            stack += part.parts
        return objects

    def _chosen(self, kind: Kind) -> Selection:
        return Selection(Both(self.kind, kind))

    def __repr__(self) -> str:
        return repr(self.kind)


select = Selector()
"""How selections are made: `gg.select.op("Relu")`, `gg.select.scope("enc")`, ..."""


def as_selection(what: Any) -> Selection:
    """A selection as it is; a string is an op type; a node or region selects itself."""
    if isinstance(what, Selection):
        return what
    if isinstance(what, str):
        return select.op(what)
    if isinstance(what, Node | Region):
        return Selection(Itself(what))
    hint = " Say `.node` for the node that made it." if isinstance(what, Tensor) else ""
    raise RegionError(
        "a selection is an op type, a node, a region or something made with gg.select, "
        f"got {what!r}.{hint}"
    )


def op_types(selection: Any) -> tuple[str, ...]:
    """The op types that a selection is for, if it is for all nodes of some types; else ()."""
    if isinstance(selection, str):
        check_op_type(selection)
        return (selection,)
    kind = selection.kind if isinstance(selection, Selection) else None
    return kind.types if isinstance(kind, OfType) else ()


def targets_of(selection: Any, graph: Graph) -> list[Target]:
    """What is selected in a graph; RegionError with near misses where that is nothing."""
    chosen = as_selection(selection)
    targets = chosen.find(graph)
    if targets:
        return targets
    derived = chosen.kind._find(graph, True)
    hint = (
        f"It would select {len(covered(derived))} derived nodes: say `.backward()` to mean them."
        if derived
        else chosen.kind._hint(graph)
    )
    said = "\n".join(filter(None, (hint, opaque_among(pool(graph, False)))))
    raise RegionError(f"{chosen!r} selects nothing in {graph!r}.\n{said}".rstrip())


def _node_of(what: Any) -> Node:
    if isinstance(what, Tensor):
        return what.node
    if isinstance(what, Node):
        return what
    raise RegionError(f"select.nodes takes nodes or tensors, got {what!r}")


def _tensors(tree: Any, what: str) -> tuple[Tensor, ...]:
    tensors = tuple(flatten(tree))
    for t in tensors:
        if not isinstance(t, Tensor):
            raise RegionError(f"the {what} of select.between are tensors, got {t!r}")
    return tensors
