"""The kinds of selection: by type, name, test, listing, paths, and rule."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

from ...base.errors import RegionError
from ...ir.graph import Graph
from ...ir.node import Node, Region, Tensor, rule_name
from ...ir.residual import Residual
from ..index import bodies_of, has_gradient, index_of, marked_regions
from .hints import near, shown, types_near
from .targets import Group, Kind, Target, as_group, is_in, members_of, of_types, pool


class Itself(Kind):
    """One node or region."""

    def __init__(self, target: Node | Region) -> None:
        self.target = target
        self.names = (target,)

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        return [self.target] if is_in(self.target, graph) else []

    def __repr__(self) -> str:
        return repr(self.target)


class OfType(Kind):
    """The nodes of some op types."""

    def __init__(self, types: tuple[str, ...]) -> None:
        self.types = types

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        return list(of_types(graph, self.types, derived))

    def _hint(self, graph: Graph) -> str:
        return types_near(self.types)(graph)

    def __repr__(self) -> str:
        return f"select.op({', '.join(map(shown, self.types))})"


class Matching(Kind):
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
            return [n for n in pool(graph, derived) if self.test(n)]
        key = self.method, self.args
        return [n for each in bodies_of(graph) for n in index_of(each).matching(key, self.test)]

    def _hint(self, graph: Graph) -> str:
        return self.near(graph)

    def __repr__(self) -> str:
        return f"select.{self.method}({', '.join(map(shown, self.args))})"


class Derived(Kind):
    """The derived nodes."""

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        return [n for n in pool(graph, True) if n.origin is not None]

    def _hint(self, graph: Graph) -> str:
        return "gradients() has built no node here yet."

    def __repr__(self) -> str:
        return "select.backward()"


class Listed(Kind):
    """The nodes that the user lists, derived ones too, as one group."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.listed = self.names = nodes

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        nodes = {n for n in self.listed if is_in(n, graph)}
        if any(type(n.op) is Residual for n in nodes):
            return [Group(nodes, self)]  # an error where it is marked
        return as_group(nodes, self, graph)

    def _hint(self, graph: Graph) -> str:
        return "It names no node."

    def __repr__(self) -> str:
        return f"select.nodes({', '.join(n.name for n in self.listed)})"


class Between(Kind):
    """The nodes on paths, as one group."""

    def __init__(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        self.xs = xs
        self.ys = ys
        self.names = (*xs, *ys)

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        homes = {t.graph for t in self.names if is_in(t, graph)}
        if len(homes) > 1:
            first = self.names[0].graph
            raise RegionError(f"{self!r}: its tensors lie in several graphs, {first!r} among them")
        return as_group(self._on_paths(derived), self, graph) if homes else []

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
        path_nodes: set[Node] = set()
        for node in sorted(before, key=lambda n: n.index):
            if any(t in begins or t.node in path_nodes for t in node.inputs):
                path_nodes.add(node)
        return path_nodes

    def _hint(self, graph: Graph) -> str:
        ys = ", ".join(f"{t.name} ({t.where})" for t in self.ys) or "no tensor"
        xs = ", ".join(f"{t.name} ({t.where})" for t in self.xs) or "no tensor"
        return f"No path leads from {xs} to {ys}."

    def __repr__(self) -> str:
        xs, ys = (", ".join(t.name for t in ts) for ts in (self.xs, self.ys))
        return f"select.between([{xs}], [{ys}])"


class Ruled(Kind):
    """The marks with a rule, or with a rule of that name."""

    def __init__(self, rule: Any) -> None:
        self.rule_ = rule

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        targets: list[Target] = []
        for each in bodies_of(graph):
            targets += [
                r
                for r in marked_regions(each)
                if self._is(r.rule) and (derived or r.origin is None) and _is_site(r)
            ]
        for each in bodies_of(graph):
            stamped = [n for n in index_of(each).stamped if n.stamp is not None]
            targets += [
                n
                for n in sorted(stamped, key=lambda n: n.index)
                if self._is(n.stamp) and has_gradient(n) and (derived or n.origin is None)
            ]
        return targets

    def _is(self, rule: Any) -> bool:
        return self.rule_ in (rule, rule_name(rule), getattr(rule, "fn", None))

    def _hint(self, graph: Graph) -> str:
        graphs = bodies_of(graph)
        names = {rule_name(r.rule) for g in graphs for r in marked_regions(g) if _is_site(r)}
        names |= {rule_name(n.stamp) for g in graphs for n in g.nodes if n.stamp is not None}
        if not names:
            return "Nothing is marked there."
        return near((rule_name(self.rule_),), names, "marks have the rules")

    def __repr__(self) -> str:
        return f"select.rule({shown(self.rule_)})"


def _is_site(region: Region) -> bool:
    """Whether it is marked still."""
    return region.on_tensors or bool(members_of(region))


class OfSources(Kind):
    """The variables that are to be trained, or the placeholders with a gradient, by name."""

    def __init__(self, method: str, patterns: tuple[str, ...]) -> None:
        self.method = method
        self.patterns = patterns

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        found = self._sources(graph)
        if not self.patterns:
            return list(found)
        return [n for n in found if any(fnmatchcase(n.name, p) for p in self.patterns)]

    def _sources(self, graph: Graph) -> list[Node]:
        if self.method == "variables":
            return [t.node for t in graph.variables.trainable]
        nodes = (n for n in graph.nodes if n.type == "Placeholder")
        return [n for n in nodes if n.outputs[0].type.differentiable]

    def _hint(self, graph: Graph) -> str:
        names = {n.name for n in self._sources(graph)}
        return near(self.patterns, names, "there are") if names else "There are none."

    def __repr__(self) -> str:
        return f"select.{self.method}({', '.join(map(shown, self.patterns))})"
