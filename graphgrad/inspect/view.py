"""What a picture shows, before anybody draws it: nodes, edges, boxes, and what is known of each.

This is the one model behind DOT, SVG, text, Mermaid, TensorBoard and pages. Everything here is one
pass over the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypedDict

from ..ir.collector import collector_paused
from ..ir.errors import did_you_mean
from ..ir.node import Node, Region, RuleCall, Tensor
from ..ir.op import OP_TYPES
from ..ir.residual import Residual
from .boxes import Bypass, Mark, Owner, Tree, mirrored, paths_of, scopes_of
from .bypassed import Bypassed, bypassed_of
from .collapse import Collapse, collapsed_boxes, is_large
from .columns import columns_of
from .edges import Edge, edges_of
from .failed import failure_of
from .mirror import heights_of, pairs_of
from .overlay import Values, overlay_of
from .parts import divide
from .subject import subject_of
from .unfolded import unfold
from .wording import kind_of, local_name, site_of

__all__ = ["Options", "Owner", "View", "behind", "view_of"]

SAVED_LIMIT = 300
Place = tuple[int, tuple[Owner, ...]]


class Options(TypedDict, total=False):
    """What may be asked of every picture.

    title        default: the graph's name, if it was given one
    saved_edges  whether to draw what gradients read of the forward part: True, False, or "auto":
                 up to 300 nodes
    collapse     boxes that are shown as one node: "auto" (above 2,000 nodes, as many as it takes),
                 "none", "all" (the outermost ones), or a list of regions and of names, which may be
                 patterns, of scopes ("encoder/*"), rules ("ste") and regions ("#0")
    scopes       whether name scopes are boxes (default: True)
    hide         nodes and op types that are left out
    overlay      {tensor or node: number} or an Overlay: shown as colours
    failed       what failed, ringed: a node, a tensor, a name, an exception, or a list of these
    bypassed     whether to show, struck through, the default gradients that rules were used instead
                 of (default: False)
    made_by      {node: name of the pass that made it}, such as the `made_by` of a PassRecord
    bodies       whether the bodies of control flow are shown, each in a box (default: True)
    """

    title: str | None
    saved_edges: bool | str
    collapse: Collapse
    scopes: bool
    hide: Iterable[Any]
    overlay: Values
    failed: Any
    bypassed: bool
    made_by: dict[Node, str] | None
    bodies: bool


class View:
    """A plain description of what is shown.

    title      of the picture
    nodes      in an order in which they can run
    results    the tensors asked for, in order; empty where a whole graph is shown
    id         node -> `n12`, unique in the view
    column     node -> its column
    path       node -> the regions and rule calls around it, innermost first
    bodies     node of a body of control flow -> the body
    marks      as path, with bodies, and with the default gradient of a rule, as around their nodes
    scope      node -> the parts of the name scope it belongs to
    box        node -> the box it is directly in
    columns    the outermost boxes, from left to right
    scoped     whether name scopes are boxes
    mirror     box of column 1 -> the box of column 0 that it is the mirror image of
    edges      what is read, in order of the readers
    height     node of column 0 or 1 -> where it stands: what is drawn above has a smaller number
    order      node -> the same for all nodes, as far as columns can be compared
    pairs      forward node -> the gradient nodes that stand beside it
    collapsed  boxes that are shown as one node
    saved      whether edges from the forward part to the backward part are drawn
    overlay    the numbers to show, or None
    failed     nodes to ring; reason: the first line of the error
    bypassed   node of a default gradient that a rule was used instead of -> what stands for that
    status     in a comparison: node -> "added", "removed", "changed" or ""
    hidden     how many nodes were left out because they were asked to be
    made_by    node -> the pass that made it
    twins, before   as in Subject; twins also says what a node of a copy stands for
    """

    def __init__(self, shown: Any, options: Options) -> None:
        subject = subject_of(shown)
        title, collapse = options.get("title"), options.get("collapse", "auto")
        unfolded = unfold(subject.nodes if options.get("bodies", True) else ())
        nodes, self.bodies = unfolded.nodes or subject.nodes, unfolded.bodies
        failure = failure_of(options.get("failed"), nodes)
        self.failed, self.reason = failure.nodes, failure.reason
        self.title = subject.title if title is None else title
        self.results, self.status = subject.results, subject.status
        self.twins, self.before = subject.twins, subject.before
        self.made_by = options.get("made_by") or {}
        self.nodes = [n for n in (*nodes, *failure.built) if type(n.op) is not Residual]
        self.hidden = self._hide(options.get("hide", ()))
        self._reads: dict[Node, list[tuple[Tensor, bool]]] = {}
        self._in_place = unfolded.reads
        self.column = columns_of(self.nodes, self.reads)
        self._own_path = paths_of(self.nodes, subject.marks)
        self.path = {n: self._path(n) for n in self.nodes} if self.bodies else self._own_path
        self.scoped = options.get("scopes", True)
        self.scope = scopes_of(self.nodes, self.path)
        self.bypassed: dict[Node, Bypass] = {}
        if options.get("bypassed", False):
            self._add_bypassed(bypassed_of(self.nodes))
        self.id = _ids(self)
        self.height = heights_of(self)
        self.order = {n: self.height.get(n, 2 * i) for i, n in enumerate(self.nodes)}
        scopes = self.scope if self.scoped else dict.fromkeys(self.nodes, ())
        self.marks = self._marks()
        tree = Tree(self.nodes, self.column, self.marks, scopes)
        if is_large(collapse, len(self.nodes)):
            divide(tree, self.order)
        tree.number()
        self.box, self.columns = tree.box, tree.columns
        self.mirror = mirrored(self.columns)
        self.edges = edges_of(self)
        self.pairs = pairs_of(self)
        self.collapsed = collapsed_boxes(self.columns, collapse, len(self.nodes))
        self.saved = _saved(options.get("saved_edges", "auto"), len(self.nodes))
        self.overlay = overlay_of(options.get("overlay"), self.nodes)

    def reads(self, node: Node) -> list[tuple[Tensor, bool]]:
        """The tensors a node reads, each once, and whether only as a residual."""
        known = self._reads.get(node)
        if known is None:
            twins = self.twins
            found: dict[Tensor, bool] = {}
            for read in self.inputs(node):
                t, residual = behind(read)
                if twins and t.node in twins:
                    t = twins[t.node].outputs[t.index]
                found[t] = found.get(t, True) and residual
            known = self._reads[node] = list(found.items())
        return known

    def inputs(self, node: Node) -> Sequence[Tensor]:
        """What a node reads, in order: its inputs, or what is shown in their place.

        A body's placeholder reads the tensor that it stands for, and a choice what its bodies make.
        """
        return self._in_place.get(node, node.inputs)

    def stands_for(self) -> dict[Node, str]:
        """`= x` for the placeholders of bodies."""
        return {
            n: f"= {local_name(self.inputs(n)[0].node)}"
            for n in self.bodies
            if not n.inputs and n in self._in_place
        }

    def site(self, node: Node) -> Node | Region | None:
        """What a node was derived from; None for what the user built."""
        origin = node.origin
        if origin is None and node in self.bypassed:
            origin = self.bypassed[node].call
        if origin is None:
            return None
        site = site_of(origin)
        return self.twins.get(site, site) if isinstance(site, Node) else site

    def place(self, node: Node) -> Place:
        """What tells where a node is drawn: its column, and its path."""
        return self.column[node], self.path[node]

    def place_of_source(self, edge: Edge) -> Place:
        """Where the source of an edge is drawn: rules share constants, each box has its own."""
        node = edge.source
        if kind_of(node) == "constant" and node.origin is not None and edge.owner is None:
            node = edge.target
        return self.place(node)

    @property
    def regions(self) -> list[Region]:
        """The regions that have a box, in order of opening."""
        owners = {owner for path in self.path.values() for owner in path}
        return sorted((o for o in owners if isinstance(o, Region)), key=lambda r: r.index)

    @property
    def calls(self) -> list[RuleCall]:
        """The rule calls that built something, in order."""
        found = {m: None for n in self.nodes for m in self.path[n] if isinstance(m, RuleCall)}
        return list(found)

    def derived(self) -> dict[Node | Region, list[Node]]:
        """Provenance backwards: node or region -> the nodes shown that are derived from it."""
        found: dict[Node | Region, list[Node]] = {}
        for node in self.nodes:
            site = self.site(node)
            if site is not None and node not in self.bypassed:
                found.setdefault(site, []).append(node)
        return found

    def _marks(self) -> dict[Node, tuple[Mark, ...]]:
        """The paths, with a default gradient as something around its nodes."""
        marks: dict[Node, tuple[Mark, ...]] = dict(self.path)
        marks.update((n, self._around(n)) for n in self.nodes if n in self.bodies)
        marks.update((n, (owner, *self.path[n])) for n, owner in self.bypassed.items())
        return marks

    def _path(self, node: Node) -> tuple[Owner, ...]:
        """The regions and rule calls around a node, and around the bodies that it is in."""
        around = self._around(node)
        return tuple([mark for mark in around if isinstance(mark, Region | RuleCall)])

    def _around(self, node: Node) -> tuple[Mark, ...]:
        """The same, and the bodies."""
        found: list[Mark] = list(self._own_path.get(node, ()))
        while (body := self.bodies.get(node)) is not None:
            node = body.site
            found += [body, *self._own_path.get(node, ())]
        return tuple(found)

    def _hide(self, what: Iterable[Any]) -> int:
        """Leave out nodes and op types; how many nodes that were."""
        hidden = list(what) if not isinstance(what, str | Node) else [what]
        for item in hidden:
            if isinstance(item, str) and item not in OP_TYPES:
                hint = did_you_mean(item, OP_TYPES)
                raise ValueError(f"hide= takes nodes and op types, got {item!r}. {hint}".rstrip())
            if not isinstance(item, str | Node):
                raise TypeError(f"hide= takes nodes and op types, got {item!r}")
        left_out, count = set(hidden), len(self.nodes)
        if left_out:
            self.nodes = [n for n in self.nodes if not {n, n.type} & left_out]
        return count - len(self.nodes)

    def _add_bypassed(self, defaults: Sequence[Bypassed]) -> None:
        """Put the nodes of default gradients into boxes beside those of the rules."""
        first = {n.origin: n for n in reversed(self.nodes) if isinstance(n.origin, RuleCall)}
        self.twins = dict(self.twins)
        for twins in {id(one.twins): one.twins for one in defaults}.values():
            self.twins.update(twins)
        for one in defaults:
            like = first[one.owner.call]
            around = self.path[like][self.path[like].index(one.owner.call) + 1 :]
            for node in _of_use(one.nodes):
                if type(node.op) is not Residual:
                    self.nodes.append(node)
                    self.bypassed[node] = one.owner
                    self.column[node] = self.column[like]
                    self.path[node] = around
                    self.scope[node] = self.scope[like]

    def __repr__(self) -> str:
        return f"<view {self.title!r}: {len(self.nodes)} nodes, {len(self.edges)} edges>"


def view_of(shown: Any, title: str | None = None, **options: Any) -> View:
    """The view of what can be shown (see subject_of), with what is asked of it (see Options)."""
    unknown = [name for name in options if name not in Options.__annotations__]
    if unknown:
        hint = did_you_mean(unknown[0], Options.__annotations__)
        raise TypeError(f"a picture has no option {unknown[0]!r}. {hint}".rstrip())
    options["title"] = title
    with collector_paused():
        return View(shown, options)  # type: ignore[arg-type]


def behind(t: Tensor) -> tuple[Tensor, bool]:
    """The tensor that a Residual stands for, and True; any other tensor, and False."""
    residual = False
    while type(t.node.op) is Residual:
        t, residual = t.node.inputs[0], True
    return t, residual


def _of_use(default: Sequence[Node]) -> Sequence[Node]:
    """A default gradient without a dy that it does not read, unless that is all there is."""
    read = {t.node for node in default for t in node.inputs}
    return [n for n in default if kind_of(n) != "input" or n in read] or default


def _ids(view: View) -> dict[Node, str]:
    """`n12` by creation index; c12 in bodies; r12 for what a comparison took from the other graph,
    d12 for default gradients, x12 for what could not be built; by place where indices do not tell
    apart.
    """
    found: dict[Node, str] = {}
    home = next((n.graph for n in view.nodes if view.status.get(n) != "removed"), None)
    inside = 0
    for node in view.nodes:
        letter = "n"
        if node in view.bypassed:
            letter = "d"
        elif not node.outputs and node in view.failed:
            letter = "x"
        elif view.status.get(node) == "removed" and node.graph is not home:
            letter = "r"
        if node in view.bodies:
            found[node], inside = f"c{inside}", inside + 1
        else:
            found[node] = f"{letter}{node.index}"
    if len(set(found.values())) == len(found):
        return found
    return {n: f"{name[0]}{i}" for i, (n, name) in enumerate(found.items())}


def _saved(wanted: bool | str, nodes: int) -> bool:
    if wanted not in (True, False, "auto"):
        raise ValueError(f'saved_edges is True, False or "auto", got {wanted!r}')
    return nodes <= SAVED_LIMIT if wanted == "auto" else bool(wanted)
