"""SELECT: what a mark or an override is for, said afterwards and without an edit of the model.

A selection is a question to a graph, asked when it is used. Its answer is a list of *targets*: a
node, a region, or a group of nodes that is to become one region.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from ..ir.errors import GraphError, RegionError, did_you_mean
from ..ir.graph import Graph
from ..ir.node import Node, Region, Tensor
from ..ir.op import OP_TYPES
from ..ir.position import of_function, show
from ..ir.residual import Residual
from ..ir.tree import flatten
from .boundary import known, scan
from .index import bodies_of, has_gradient, index_of, marked_regions
from .scopes import _takes_inputs

__all__ = ["Selection", "select"]


class Group:
    """Nodes that are meant as one region, in order of creation, and the selection that says so."""

    __slots__ = ("nodes", "of")

    def __init__(self, nodes: Iterable[Node], of: Selection) -> None:
        self.nodes = tuple(sorted(set(nodes), key=lambda n: n.index))
        self.of = of

    @property
    def graph(self) -> Graph:
        """The graph that all of them are in."""
        graph = self.nodes[0].graph
        assert graph is not None
        return graph

    @property
    def key(self) -> frozenset[Node]:
        """What tells it from other groups: its nodes that have a gradient."""
        return frozenset(n for n in self.nodes if has_gradient(n))

    def __repr__(self) -> str:
        shown = ", ".join(f"{n.name} ({n.where})" for n in self.nodes[:3])
        more = f" and {len(self.nodes) - 3} more" if len(self.nodes) > 3 else ""
        return f"{self.of!r} ({shown}{more})"


Target = Node | Region | Group


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
        """The nodes of these op types, each a site of its own.

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
            _check_op_type(op_type)
        return self._chosen(_OfType(types))

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

        return self._chosen(_Matching("name", patterns, matches, _names_near(patterns), fixed=True))

    def where(self, predicate: Callable[[Node], Any]) -> Selection:
        """The nodes for which predicate(node) is true, each a site of its own.

        Parameters: predicate: a function of a Node.

        Returns: a Selection.

        >>> y = gg.sum(gg.exp(gg.constant([1.0, 2.0])))
        >>> [n.type for n in gg.select.where(lambda n: n.outputs[0].ndim == 0).find(y.graph)]
        ['ReduceSum']
        """
        return self._chosen(
            _Matching("where", (predicate,), lambda n: bool(predicate(n)), _no_hint)
        )

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
        return self._chosen(_Listed(tuple(_node_of(n) for n in flatten(list(nodes)))))

    def between(self, xs: Any, ys: Any) -> Selection:
        """The nodes on paths from xs to ys, as one region.

        The producers of ys are in it, those of xs are not. Constants that only it reads join it
        when it is marked.

        Parameters: xs, ys: tensors, or any nesting of list, tuple and dict of them.

        Returns: a Selection.

        Raises: RegionError for what are no tensors.

        >>> x = gg.variable(2.0)
        >>> y = gg.exp(x * x)
        >>> chosen = gg.select.between(x, y)
        >>> gg.evaluate(gg.gradients(y, x, overrides={chosen: gg.rules.scale(0.0)}))
        array(0.)
        """
        return self._chosen(_Between(_tensors(xs, "xs"), _tensors(ys, "ys")))

    def scope(self, name: str) -> Selection:
        """The nodes named under a name scope, as one region.

        Parameters: name: such as "model/enc".

        Returns: a Selection.

        >>> x = gg.variable(2.0)
        >>> with gg.name_scope("enc"):
        ...     y = gg.exp(x * x)
        >>> gg.evaluate(gg.gradients(y, x, overrides={gg.select.scope("enc"): gg.rules.scale(0.0)}))
        array(0.)
        """
        prefix = name.strip("/") + "/"
        found = _Matching(
            "scope", (name,), lambda n: n.name.startswith(prefix), _scopes_near(name), fixed=True
        )
        return self._chosen(_Regrouped(found, together=True, shown=repr(found)))

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
        _check_form(form)
        return self._chosen(_Pattern(form))

    def rule(self, rule: Any) -> Selection:
        """The regions, and the nodes of op-type maps, that are marked with a rule or its name.

        Parameters: rule: a name, a callable or a rule object.

        Returns: a Selection.

        >>> x = gg.constant(0.3)
        >>> y = gg.override("Identity")(gg.tanh)(x)
        >>> gg.select.rule("Identity").find(x.graph)[0] is y.node.region
        True
        """
        return self._chosen(_Ruled(rule))

    def backward(self) -> Selection:
        """On `gg.select`: the derived nodes, each a site of its own. On a selection: see there."""
        return self._chosen(_Derived())

    def _chosen(self, selection: Selection) -> Selection:
        return selection


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

    _parts: tuple[Selection, ...] = ()
    _names: tuple[Node | Region | Tensor, ...] = ()

    def each(self) -> Selection:
        """Every node a site of its own; a region that was selected as such stays one.

        >>> x = gg.constant(2.0)
        >>> with gg.name_scope("enc"):
        ...     y = gg.exp(gg.sin(x))
        >>> [node.type for node in gg.select.scope("enc").each().find(x.graph)]
        ['Sin', 'Exp']
        """
        return _Regrouped(self, together=False)

    def together(self) -> Selection:
        """All the nodes as one region."""
        return _Regrouped(self, together=True)

    def backward(self) -> Selection:
        """The same among all nodes, those that gradients() built included."""
        return _WithDerived(self)

    def __and__(self, other: Any) -> Selection:
        return _Both(self, as_selection(other))

    def __rand__(self, other: Any) -> Selection:
        return _Both(as_selection(other), self)

    def __or__(self, other: Any) -> Selection:
        return _Either(self, as_selection(other))

    def __ror__(self, other: Any) -> Selection:
        return _Either(as_selection(other), self)

    def __invert__(self) -> Selection:
        return _Rest(self)

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
        return self._find(graph, False)

    def _named(self) -> list[Node | Region | Tensor]:
        """What it and its parts name as objects."""
        found: list[Node | Region | Tensor] = []
        stack: list[Selection] = [self]
        while stack:
            part = stack.pop()
            found += part._names
            stack += part._parts
        return found

    def _chosen(self, selection: Selection) -> Selection:
        return _Both(self, selection)

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        raise NotImplementedError

    def _hint(self, graph: Graph) -> str:
        """What to say where it selects nothing: a near miss."""
        return ""


select = Selector()
"""How selections are made: `gg.select.op("Relu")`, `gg.select.scope("enc")`, ..."""


def as_selection(what: Any) -> Selection:
    """A selection as it is; a string is an op type; a node or region selects itself."""
    if isinstance(what, Selection):
        return what
    if isinstance(what, str):
        return select.op(what)
    if isinstance(what, Node | Region):
        return _Itself(what)
    hint = " Say `.node` for the node that made it." if isinstance(what, Tensor) else ""
    raise RegionError(
        "a selection is an op type, a node, a region or something made with gg.select, "
        f"got {what!r}.{hint}"
    )


def op_types(selection: Any) -> tuple[str, ...]:
    """The op types that a selection is for, if it is for all nodes of some types; else ()."""
    if isinstance(selection, str):
        _check_op_type(selection)
        return (selection,)
    return selection.types if isinstance(selection, _OfType) else ()


def targets_of(selection: Any, graph: Graph) -> list[Target]:
    """What is selected in a graph; RegionError with near misses where that is nothing."""
    chosen = as_selection(selection)
    found = chosen.find(graph)
    if found:
        return found
    derived = chosen._find(graph, True)
    hint = (
        f"It would select {len(covered(derived))} derived nodes: say `.backward()` to mean them."
        if derived
        else chosen._hint(graph)
    )
    raise RegionError(f"{chosen!r} selects nothing in {graph!r}.\n{hint}".rstrip())


def covered(targets: Iterable[Target]) -> set[Node]:
    """The nodes of targets, regions' members included."""
    found: set[Node] = set()
    for target in targets:
        found.update(nodes_of(target))
    return found


def nodes_of(target: Target) -> Sequence[Node]:
    """The nodes of one target."""
    if isinstance(target, Node):
        return (target,)
    return members_of(target) if isinstance(target, Region) else target.nodes


def members_of(region: Region) -> list[Node]:
    """The nodes inside a region, as far as they were built."""
    scan(region.graph)
    return known(region).members


def is_in(what: Node | Region | Tensor, graph: Graph) -> bool:
    """Whether it is in the graph or in a body of control flow there."""
    return what.graph is graph or what.graph in bodies_of(graph)


def _pool(graph: Graph, derived: bool) -> list[Node]:
    """The nodes that may be matched: with derived=False those that the user built."""
    graphs = bodies_of(graph)
    if derived:
        return [n for each in graphs for n in each.nodes if has_gradient(n)]
    return [n for each in graphs for n in index_of(each).forward]


def _of_types(graph: Graph, types: Sequence[str], derived: bool) -> list[Node]:
    """Those of the pool that are of one of these types."""
    if derived:
        return [n for n in _pool(graph, True) if n.type in types]
    found: list[Node] = []
    for each in bodies_of(graph):
        index = index_of(each)
        nodes = [n for t in types for n in index.types.get(t, ())]
        found += nodes if len(types) == 1 else sorted(nodes, key=lambda n: n.index)
    return found


def _as_group(nodes: Iterable[Node], of: Selection, graph: Graph) -> list[Target]:
    """The nodes as one group, without those in a body that a node of the group runs."""
    among = {n for n in nodes if type(n.op) is not Residual}
    runs = bodies_of(graph) if len({n.graph for n in among}) > 1 else {}
    kept = [n for n in among if not any(r in among for r in _runners(n, runs))]
    if len({n.graph for n in kept}) > 1:
        shown = ", ".join(f"{n.name} ({n.where}) of {n.graph!r}" for n in kept[:4])
        raise RegionError(
            f"{of!r} is meant as one region, but its nodes lie in several graphs, as bodies of "
            f"control flow do: {shown}.\nSay `.each()`, or select the node that runs the body."
        )
    return [Group(kept, of)] if kept else []


def _runners(node: Node, runs: dict[Graph, Node | None]) -> Iterable[Node]:
    """The nodes that run the bodies around a node, innermost first."""
    runner = runs.get(node.graph) if node.graph is not None else None
    while runner is not None:
        yield runner
        runner = runs.get(runner.graph) if runner.graph is not None else None


# --- the kinds of selection -------------------------------------------------------------------


class _Itself(Selection):
    """One node or region."""

    def __init__(self, target: Node | Region) -> None:
        self.target = target
        self._names = (target,)

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        return [self.target] if is_in(self.target, graph) else []

    def __repr__(self) -> str:
        return repr(self.target)


class _OfType(Selection):
    """The nodes of some op types."""

    def __init__(self, types: tuple[str, ...]) -> None:
        self.types = types

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        return list(_of_types(graph, self.types, derived))

    def _hint(self, graph: Graph) -> str:
        return _types_near(self.types)(graph)

    def __repr__(self) -> str:
        return f"select.op({', '.join(map(_shown, self.types))})"


class _Matching(Selection):
    """Every node that passes a test. fixed: the test asks for the name alone."""

    def __init__(
        self,
        method: str,
        args: tuple[Any, ...],
        test: Callable[[Node], bool],
        hint: Callable[[Graph], str],
        fixed: bool = False,
    ) -> None:
        self.method = method
        self.args = args
        self.test = test
        self.near = hint
        self.fixed = fixed

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        if not self.fixed or derived:
            return [n for n in _pool(graph, derived) if self.test(n)]
        key = self.method, self.args
        return [n for each in bodies_of(graph) for n in index_of(each).matching(key, self.test)]

    def _hint(self, graph: Graph) -> str:
        return self.near(graph)

    def __repr__(self) -> str:
        return f"select.{self.method}({', '.join(map(_shown, self.args))})"


class _Derived(Selection):
    """The derived nodes."""

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        return [n for n in _pool(graph, True) if n.origin is not None]

    def _hint(self, graph: Graph) -> str:
        return "gradients() has built no node here yet."

    def __repr__(self) -> str:
        return "select.backward()"


class _Listed(Selection):
    """The nodes that the user lists, derived ones too, as one group."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.listed = self._names = nodes

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        nodes = {n for n in self.listed if is_in(n, graph)}
        if any(type(n.op) is Residual for n in nodes):
            return [Group(nodes, self)]  # an error where it is marked
        return _as_group(nodes, self, graph)

    def _hint(self, graph: Graph) -> str:
        return "It names no node."

    def __repr__(self) -> str:
        return f"select.nodes({', '.join(n.name for n in self.listed)})"


class _Between(Selection):
    """The nodes on paths, as one group."""

    def __init__(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        self.xs = xs
        self.ys = ys
        self._names = (*xs, *ys)

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        homes = {t.graph for t in self._names if is_in(t, graph)}
        if len(homes) > 1:
            first = self._names[0].graph
            raise RegionError(f"{self!r}: its tensors lie in several graphs, {first!r} among them")
        return _as_group(self._on_paths(derived), self, graph) if homes else []

    def _on_paths(self, derived: bool) -> set[Node]:
        """What ys depend on, as far as it depends on an x."""
        begins = set(self.xs)
        lowest = min((t.node.index for t in self.xs), default=0)
        before: set[Node] = set()
        stack = [t.node for t in self.ys if t not in begins] if begins else []
        while stack:
            node = stack.pop()
            if node not in before and node.index >= lowest and (derived or node.origin is None):
                before.add(node)
                stack.extend(t.node for t in node.inputs if t not in begins)
        found: set[Node] = set()
        for node in sorted(before, key=lambda n: n.index):
            if any(t in begins or t.node in found for t in node.inputs):
                found.add(node)
        return found

    def _hint(self, graph: Graph) -> str:
        ys = ", ".join(f"{t.name} ({t.where})" for t in self.ys) or "no tensor"
        xs = ", ".join(f"{t.name} ({t.where})" for t in self.xs) or "no tensor"
        return f"No path leads from {xs} to {ys}."

    def __repr__(self) -> str:
        xs, ys = (", ".join(t.name for t in ts) for ts in (self.xs, self.ys))
        return f"select.between([{xs}], [{ys}])"


class _Ruled(Selection):
    """The marks with a rule, or with a rule of that name."""

    def __init__(self, rule: Any) -> None:
        self.rule_ = rule

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        found: list[Target] = []
        for each in bodies_of(graph):
            found += [
                r
                for r in marked_regions(each)
                if self._is(r.rule) and (derived or r.origin is None) and members_of(r)
            ]
        for each in bodies_of(graph):
            stamped = [n for n in index_of(each).stamped if n.stamp is not None]
            found += [
                n
                for n in sorted(stamped, key=lambda n: n.index)
                if self._is(n.stamp) and has_gradient(n) and (derived or n.origin is None)
            ]
        return found

    def _is(self, rule: Any) -> bool:
        return self.rule_ in (rule, rule_name(rule), getattr(rule, "fn", None))

    def _hint(self, graph: Graph) -> str:
        graphs = bodies_of(graph)
        names = {rule_name(r.rule) for g in graphs for r in marked_regions(g) if members_of(r)}
        names |= {rule_name(n.stamp) for g in graphs for n in g.nodes if n.stamp is not None}
        if not names:
            return "Nothing is marked there."
        return _near((rule_name(self.rule_),), names, "marks have the rules")

    def __repr__(self) -> str:
        return f"select.rule({_shown(self.rule_)})"


class _Both(Selection):
    """What the left one selects, as far as the right one selects it too."""

    def __init__(self, left: Selection, right: Selection) -> None:
        self.left = left
        self.right = right
        self._parts = (left, right)

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        among = set(self.right._find(graph, derived))
        also = covered(among)
        found: list[Target] = []
        for target in self.left._find(graph, derived):
            if isinstance(target, Group):
                kept = [n for n in target.nodes if n in also]
                found += [Group(kept, self)] if kept else []
            elif target in among or all(n in also for n in nodes_of(target) if has_gradient(n)):
                found.append(target)
        return found

    def _hint(self, graph: Graph) -> str:
        for part in (self.left, self.right):
            if not part._find(graph, False):
                return f"{part!r} alone selects nothing. {part._hint(graph)}".rstrip()
        left, right = (len(covered(p._find(graph, False))) for p in (self.left, self.right))
        return (
            f"{self.left!r} covers {left} nodes and {self.right!r} covers {right}; no site of the "
            "first lies in the second."
        )

    def __repr__(self) -> str:
        return f"({self.left!r} & {self.right!r})"


class _Either(Selection):
    """What either selects; each target once."""

    def __init__(self, left: Selection, right: Selection) -> None:
        self.left = left
        self.right = right
        self._parts = (left, right)

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        found: dict[Any, Target] = {}
        for target in (*self.left._find(graph, derived), *self.right._find(graph, derived)):
            found.setdefault(target.nodes if isinstance(target, Group) else target, target)
        return list(found.values())

    def _hint(self, graph: Graph) -> str:
        return "\n".join(filter(None, (self.left._hint(graph), self.right._hint(graph))))

    def __repr__(self) -> str:
        return f"({self.left!r} | {self.right!r})"


class _Rest(Selection):
    """The nodes that are not selected."""

    def __init__(self, inner: Selection) -> None:
        self.inner = inner
        self._parts = (inner,)

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        out = covered(self.inner._find(graph, derived))
        return [n for n in _pool(graph, derived) if n not in out]

    def _hint(self, graph: Graph) -> str:
        return f"{self.inner!r} selects every node that has inputs."

    def __repr__(self) -> str:
        return f"~{self.inner!r}"


class _Regrouped(Selection):
    """The same nodes, each a site of its own, or all one group."""

    def __init__(self, inner: Selection, *, together: bool, shown: str = "") -> None:
        self.inner = inner
        self._parts = (inner,)
        self.is_together = together
        self.shown = shown

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        targets = self.inner._find(graph, derived)
        if self.is_together:
            return _as_group(covered(targets), self, graph)
        found: dict[Target, None] = {}
        for target in targets:
            found.update(
                (t, None) for t in (target.nodes if isinstance(target, Group) else (target,))
            )
        return list(found)

    def _hint(self, graph: Graph) -> str:
        return self.inner._hint(graph)

    def __repr__(self) -> str:
        return self.shown or f"{self.inner!r}.{'together' if self.is_together else 'each'}()"


class _WithDerived(Selection):
    """The same among all nodes."""

    def __init__(self, inner: Selection) -> None:
        self.inner = inner
        self._parts = (inner,)

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        return self.inner._find(graph, True)

    def _hint(self, graph: Graph) -> str:
        return self.inner._hint(graph)

    def __repr__(self) -> str:
        return f"{self.inner!r}.backward()"


# --- patterns ---------------------------------------------------------------------------------


class _Pattern(Selection):
    """Each match of a form, as one group."""

    def __init__(self, form: Any) -> None:
        self.form = form

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        found: dict[tuple[Node, ...], Target] = {}
        root = _root(self.form)
        for node in _of_types(graph, (root,), derived):
            nodes = _match(self.form, node, derived)
            if nodes:
                group = Group(nodes, self)
                found.setdefault(group.nodes, group)
        return list(found.values())

    def _hint(self, graph: Graph) -> str:
        root = _root(self.form)
        count = len(_of_types(graph, (root,), False))
        if count:
            return f"{count} nodes are of type {root!r}; what they read does not fit the form."
        return _types_near((root,))(graph)

    def __repr__(self) -> str:
        return f"select.pattern({self.form!r})"


def _match(form: Any, root: Node, derived: bool) -> set[Node] | None:
    """The nodes of a match at a root, but for those without inputs; None where it does not fit."""
    nodes: set[Node] = set()
    bound: dict[str, Tensor] = {}
    stack: list[tuple[Any, Node, Tensor | None]] = [(form, root, None)]
    while stack:
        part, node, tensor = stack.pop()
        if part is None:
            continue
        if _is_variable(part):
            if tensor is None or bound.setdefault(part, tensor) is not tensor:
                return None
            continue
        if node.type != _root(part) or (node.origin is not None and not derived):
            return None
        if has_gradient(node):
            nodes.add(node)
        parts = list(part[1:]) if isinstance(part, tuple) else [...]
        if isinstance(part, tuple) and not parts:
            parts = [...]
        if parts[-1] is ...:
            parts.pop()
            if len(parts) > len(node.inputs):
                return None
        elif len(parts) != len(node.inputs):
            return None
        stack += [(p, t.node, t) for p, t in zip(parts, node.inputs, strict=False)]
    return nodes


def _root(form: Any) -> str:
    root: str = form if isinstance(form, str) else form[0]
    return root


def _is_variable(form: Any) -> bool:
    return isinstance(form, str) and form.startswith("?")


def _check_form(form: Any) -> None:
    """RegionError for what is no form, or names an op type that is not there."""
    if form is None or _is_variable(form):
        raise RegionError(f"a pattern begins with an op type, got {form!r}, which matches anything")
    stack = [form]
    while stack:
        part = stack.pop()
        if part is None or _is_variable(part):
            continue
        if isinstance(part, tuple) and part and isinstance(part[0], str):
            inputs = part[1:]
            stack.extend(inputs[:-1] if inputs and inputs[-1] is ... else inputs)
            part = part[0]
        if not isinstance(part, str):
            raise RegionError(
                'a pattern is an op type, a tuple such as ("Add", "Exp", None), None or "?x", '
                f"got {part!r} in {form!r}"
            )
        if part not in OP_TYPES:
            raise RegionError(_no_type(part))
    if not _takes_inputs(OP_TYPES[_root(form)]):
        raise RegionError(_no_inputs(_root(form)))


# --- arguments and near misses ----------------------------------------------------------------


def _check_op_type(op_type: Any) -> None:
    if not isinstance(op_type, str):
        raise RegionError(f"an op type is a string such as 'Relu', got {op_type!r}")
    if op_type not in OP_TYPES:
        raise RegionError(_no_type(op_type))
    if not _takes_inputs(OP_TYPES[op_type]):
        raise RegionError(_no_inputs(op_type))


def _no_type(op_type: str) -> str:
    return f"there is no op type {op_type!r}. {did_you_mean(op_type, OP_TYPES)}".rstrip()


def _no_inputs(op_type: str) -> str:
    return f"{op_type!r} has no inputs, so there is no gradient to override"


def _node_of(what: Any) -> Node:
    if isinstance(what, Tensor):
        return what.node
    if isinstance(what, Node):
        return what
    raise RegionError(f"select.nodes takes nodes or tensors, got {what!r}")


def _tensors(tree: Any, what: str) -> tuple[Tensor, ...]:
    found = tuple(flatten(tree))
    for t in found:
        if not isinstance(t, Tensor):
            raise RegionError(f"the {what} of select.between are tensors, got {t!r}")
    return found


def rule_name(rule: Any) -> str:
    """What a rule is called."""
    if isinstance(rule, str):
        return rule
    return str(getattr(rule, "name", None) or getattr(rule, "__name__", rule))


def _shown(value: Any) -> str:
    if callable(value) and hasattr(value, "__name__"):
        at = of_function(value)
        return f"{value.__name__}, {show(at)}" if at else str(value.__name__)
    return repr(value)


def _no_hint(graph: Graph) -> str:
    return "It is asked of the nodes that the user built and that have inputs."


def _types_near(types: Sequence[str]) -> Callable[[Graph], str]:
    return lambda graph: _near(
        types, {n.type for n in _pool(graph, False)}, "the op types there are"
    )


def _names_near(patterns: Sequence[str]) -> Callable[[Graph], str]:
    return lambda graph: _near(patterns, {n.name for n in _pool(graph, False)}, "there are")


def _scopes_near(name: str) -> Callable[[Graph], str]:
    def hint(graph: Graph) -> str:
        scopes: set[str] = set()
        for node in _pool(graph, False):
            parts = node.name.split("/")[:-1]
            scopes.update("/".join(parts[: i + 1]) for i in range(len(parts)))
        return _near((name,), scopes, "the name scopes are") if scopes else "It has no name scopes."

    return hint


def _near(wanted: Sequence[str], there: set[str], lead: str) -> str:
    """A near miss, else a few of what there is."""
    for name in wanted:
        near = get_close_matches(name, there, n=1)
        if near:
            return f"Did you mean {near[0]!r}?"
    if not there:
        return ""
    some = ", ".join(map(repr, sorted(there)[:8]))
    return f"{lead[0].upper()}{lead[1:]} {some}{', ...' if len(there) > 8 else ''}."
