"""The nodes that a picture shows, and what is known of each before anything is laid out.

One pass over what was asked for; the layout (`view.py`) reads it and changes nothing of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any, TypedDict

from ...base.errors import counted, did_you_mean
from ...base.position import Position
from ...ir.node import Node, Region, RuleCall, Tensor
from ...ir.op import OP_TYPES
from ...ir.residual import Residual
from ...ops.control import Scan, While
from .boxes import BodyMark, Bypass, Path, Paths, scopes_of, unseen
from .bypassed import Bypassed, bypassed_of
from .collapse import Collapse
from .columns import columns_of
from .failed import failure_of
from .operators import homes_of, operators_of
from .overlay import Values
from .subject import subject_of
from .unfolded import unfold
from .updates import updates_of
from .wording import is_private, kind_of, local_name, site_of

__all__ = ["Options", "Scene", "behind"]

MANY = 8
"""Nodes above which a line that most of them have is not written on each."""


class Options(TypedDict, total=False):
    """What may be asked of every picture.

    title        default: the graph's name, if it was given one
    saved_edges  whether to draw what gradients read of the forward part: True, False, or "auto":
                 up to 300 nodes
    collapse     boxes that are shown as one node: "auto" (above 120 nodes, all but the outer ones
                 that there is room for), "none", "all" (the outermost ones), or a list of regions
                 and of names, which may be patterns, of scopes ("encoder/*"), rules ("ste") and
                 regions ("#0")
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


class Scene:
    """What is shown.

    title      of the picture
    nodes      in an order in which they can run
    results    the tensors asked for, in order; empty where a whole graph is shown
    column     node -> its column
    path       node -> the regions and rule calls around it, innermost first
    bodies     node of a body of control flow -> the body
    nexts      placeholder of a loop's carry -> what a run carries on
    marks      as path, with bodies, and with the default gradient of a rule, as around their nodes
    scope      node -> the parts of the name scope it belongs to
    operators  scope -> the node of that name, of which all in the scope are parts
    homes      node -> the scope in which it stands, where that is not the one it was built in
    updates    node of an optimiser -> the name of the parameter that it is for
    failed     nodes to ring; reason: the first line of the error
    bypassed   node of a default gradient that a rule was used instead of -> what stands for that
    status     in a comparison: node -> "added", "removed", "changed" or ""
    hidden     how many nodes were left out because they were asked to be
    made_by    node -> the pass that made it
    twins, before   as in Subject; twins also says what a node of a copy stands for
    """

    def __init__(self, shown: Any, options: Options) -> None:
        subject = subject_of(shown)
        title = options.get("title")
        self.title = subject.title if title is None else title
        self.results, self.status = subject.results, subject.status
        self.twins, self.before = subject.twins, subject.before
        self.made_by = options.get("made_by") or {}
        unfolded = unfold(subject.nodes if options.get("bodies", True) else ())
        nodes, self.bodies = unfolded.nodes or subject.nodes, unfolded.bodies
        self._reads: dict[Node, list[tuple[Tensor, bool]]] = {}
        self._in_place, self.nexts, self._rows = unfolded.reads, unfolded.nexts, unfolded.rows
        failure = failure_of(options.get("failed"), nodes)
        self.failed, self.reason = failure.nodes, failure.reason
        present = [n for n in (*nodes, *failure.built) if type(n.op) is not Residual]
        self.nodes = _without(present, options.get("hide", ()))
        self.hidden = len(present) - len(self.nodes)
        self.column = columns_of(self.nodes, self.reads)
        self._paths = Paths(subject.marks)
        self.path = {n: self._around(n) for n in self.nodes}
        self.operators = {} if self.status else operators_of(self.nodes)
        self.homes = {} if self.status else homes_of(self.nodes, self.operators, self.reads)
        self.scope = scopes_of(self.nodes, self.path, self.homes)
        self.updates = updates_of(self.nodes, self.reads, self.column)
        for node, name in self.updates.items():
            self.column[node] = max(2, self.column[node])
            self.scope[node] = tuple(name.split("/"))
        self._lodgers = self._lodge()
        self.bypassed: dict[Node, Bypass] = {}
        if options.get("bypassed", False):
            self._add_bypassed(bypassed_of(self.nodes))
        self.marks = self._marks()

    def reads(self, node: Node) -> list[tuple[Tensor, bool]]:
        """The tensors a node reads, each once, and whether only as a residual."""
        known = self._reads.get(node)
        if known is None:
            tensors: dict[Tensor, bool] = {}
            for read, t in zip(self.inputs(node), self.operands(node), strict=True):
                tensors[t] = tensors.get(t, True) and type(read.node.op) is Residual
            known = self._reads[node] = list(tensors.items())
        return known

    def operands(self, node: Node) -> list[Tensor]:
        """The tensors a node reads, in order, as often as it reads them."""
        read = [behind(t)[0] for t in self.inputs(node)]
        twins = self.twins
        if not twins:
            return read
        return [twins[t.node].outputs[t.index] if t.node in twins else t for t in read]

    def inputs(self, node: Node) -> Sequence[Tensor]:
        """What a node reads, in order: its inputs, or what is shown in their place.

        A body's placeholder reads the tensor that it stands for, and a choice or loop what its
        bodies make.
        """
        return self._in_place.get(node, node.inputs)

    def local_name(self, node: Node) -> str:
        """The name without the scope in which it is shown."""
        around = "".join(f"{part}/" for part in self.scope[node])
        inside = node.origin is None and node.name.startswith(around)
        return node.name.removeprefix(around) if inside else local_name(node)

    @cached_property
    def one_line(self) -> Position | None:
        """The line that built most of what is shown, as a loader does: it tells nothing there."""
        own = [n.position for n in self.nodes if n.origin is None and kind_of(n) == "op"]
        line, count = max(Counter(own).items(), key=itemgetter(1), default=(None, 0))
        return line if count > max(MANY, len(own) // 2) else None

    def stands_for(self) -> dict[Node, str]:
        """`= x`, `row of x` or `= x, next y` for the placeholders of bodies."""
        return {n: self._stands_for(n) for n in self.bodies if not n.inputs and n in self._in_place}

    def _stands_for(self, placeholder: Node) -> str:
        outer = local_name(self.inputs(placeholder)[0].node)
        if placeholder in self.nexts:
            return f"= {outer}, next {local_name(behind(self.nexts[placeholder])[0].node)}"
        return f"row of {outer}" if placeholder in self._rows else f"= {outer}"

    def outputs(self, node: Node) -> Sequence[Tensor]:
        """What a node makes; of what a loop keeps of its runs only what something reads."""
        op: Any = node.op
        if not isinstance(op, Scan | While):
            return node.outputs
        made = op.carries if isinstance(op, While) else len(op.bodies[0].outputs)
        return [t for t in node.outputs if t.index < made or t in self._read]

    @cached_property
    def _read(self) -> set[Tensor]:
        return {behind(t)[0] for n in self.nodes for t in n.inputs}.union(self.results)

    def site(self, node: Node) -> Node | Region | None:
        """What a node was derived from; None for what the user built."""
        origin = node.origin
        if origin is None and node in self.bypassed:
            origin = self.bypassed[node].call
        if origin is None:
            return None
        site = site_of(origin)
        return self.twins.get(site, site) if isinstance(site, Node) else site

    @property
    def regions(self) -> list[Region]:
        """The regions that have a box, in order of opening."""
        owners = {owner for new in unseen(self.path.values()) for owner in new}
        return sorted((o for o in owners if isinstance(o, Region)), key=lambda r: r.index)

    @property
    def calls(self) -> list[RuleCall]:
        """The rule calls that built something, in order."""
        new = unseen(self.path[n] for n in self.nodes)
        return list(dict.fromkeys(m for marks in new for m in marks if isinstance(m, RuleCall)))

    @property
    def present(self) -> list[Node]:
        """The nodes that there are: not what a comparison lost, nor default gradients not used."""
        gone = {n for n, status in self.status.items() if status == "removed"}
        return [n for n in self.nodes if n not in gone and n not in self.bypassed]

    def counts(self) -> str:
        """`58 nodes, 2 regions, 1 spliced` of what there is."""
        nodes = self.present
        marks = {m for new in unseen(self.path[n] for n in nodes) for m in new}
        regions = sum(isinstance(m, Region) for m in marks)
        calls = sum(isinstance(m, RuleCall) for m in marks)
        return f"{counted(len(nodes), 'node')}, {counted(regions, 'region')}, {calls} spliced"

    def derived(self) -> dict[Node | Region, list[Node]]:
        """Provenance backwards: node or region -> the nodes shown that are derived from it."""
        derived: dict[Node | Region, list[Node]] = {}
        for node in self.nodes:
            site = self.site(node)
            if site is not None and node not in self.bypassed:
                derived.setdefault(site, []).append(node)
        return derived

    def _marks(self) -> dict[Node, Path]:
        """The paths, with a default gradient as something around its nodes."""
        marks = dict(self.path)
        marks.update((n, self._around(n, True)) for n in self.nodes if n in self.bodies)
        marks.update((n, self._paths.put(by, self.path[n])) for n, by in self.bypassed.items())
        marks.update((n, marks[reader]) for n, reader in self._lodgers.items())
        return marks

    def _lodge(self) -> dict[Node, Node]:
        """Constants of rules and gradients -> their first readers, where they are at home.

        Rules share them: the call that was the first to want one need not be shown.
        """
        readers: dict[Node, Node] = {}
        for node in self.nodes:
            for t, _ in self.reads(node):
                constant = t.node
                if is_private(constant) and constant in self.column:
                    readers.setdefault(constant, node)
        for constant, reader in readers.items():
            for of in (self.column, self.path, self.scope):
                of[constant] = of[reader]  # type: ignore[assignment]
        return readers

    def _around(self, node: Node, bodies: bool = False) -> Path:
        """The regions and rule calls around a node, and what runs it; if asked for, the bodies."""
        paths = self._paths
        inner: list[tuple[Path, BodyMark]] = []
        while (body := self.bodies.get(node)) is not None:
            inner.append((paths.of(node), body))
            node = body.site
        around = paths.of(node)
        for path, body in reversed(inner):
            around = paths.within(path, paths.put(body, around) if bodies else around)
        return around

    def _add_bypassed(self, defaults: Sequence[Bypassed]) -> None:
        """Put the nodes of default gradients into boxes beside those of the rules."""
        first = {n.origin: n for n in reversed(self.nodes) if isinstance(n.origin, RuleCall)}
        self.twins = dict(self.twins)
        for twins in {id(one.twins): one.twins for one in defaults}.values():
            self.twins.update(twins)
        for one in defaults:
            like = first[one.owner.call]
            around = self._around(like)
            while around.item is not one.owner.call:
                around = around.outer
            around = around.outer
            for node in _of_use(one.nodes):
                if type(node.op) is not Residual:
                    self.nodes.append(node)
                    self.bypassed[node] = one.owner
                    self.column[node] = self.column[like]
                    self.path[node] = around
                    self.scope[node] = self.scope[like]


def behind(t: Tensor) -> tuple[Tensor, bool]:
    """The tensor that a Residual stands for, and True; any other tensor, and False."""
    residual = False
    while type(t.node.op) is Residual:
        t, residual = t.node.inputs[0], True
    return t, residual


def _without(nodes: list[Node], what: Iterable[Any]) -> list[Node]:
    """The nodes but for those, and those of op types, that are to be hidden."""
    hidden = list(what) if not isinstance(what, str | Node) else [what]
    for item in hidden:
        if isinstance(item, str) and item not in OP_TYPES:
            hint = did_you_mean(item, OP_TYPES)
            raise ValueError(f"hide= takes nodes and op types, got {item!r}. {hint}".rstrip())
        if not isinstance(item, str | Node):
            raise TypeError(f"hide= takes nodes and op types, got {item!r}")
    left_out = set(hidden)
    return [n for n in nodes if not {n, n.type} & left_out] if left_out else nodes


def _of_use(default: Sequence[Node]) -> Sequence[Node]:
    """A default gradient without a dy that it does not read, unless that is all there is."""
    read = {t.node for node in default for t in node.inputs}
    return [n for n in default if kind_of(n) != "input" or n in read] or default
