"""Which pass, and which of its rules, made which node; programs before and after each pass."""

from __future__ import annotations

from ..ir.node import Node, Tensor
from ..ir.program import Program
from .diff import Difference, graph_diff

__all__ = ["PassRecord"]


class PassRecord:
    """What the passes of one compile() did: give it as `watch`.

    made_by   {node: the pass that made it}; nodes of the graph are not there
    rules     {node: the rewrite rule that made it, its line and its algebra}, where one rule did;
              not in the bodies of control flow, nor where the inputs of a node changed afterwards
    programs  (pass, program after it), in order

    >>> passes = gg.PassRecord()
    >>> x = gg.placeholder((2,))
    >>> f = gg.compile(x, x + x, watch=passes)
    >>> text = gg.to_dot(f, made_by=passes.made_by)
    >>> "simplify" in [name for name, _ in passes.programs]
    True
    """

    def __init__(self) -> None:
        self.made_by: dict[Node, str] = {}
        self.rules: dict[Node, str] = {}
        self._seen: set[Node] = set()
        self.programs: list[tuple[str, Program]] = []

    def __call__(self, name: str, program: Program) -> None:
        """Note the program after a pass."""
        self.programs.append((name, program))
        for node in program.nodes:
            if node.graph is None:
                self.made_by.setdefault(node, name)

    def rewrote(self, rule: str, node: Node, outputs: tuple[Tensor, ...]) -> None:
        """Note what a rewrite rule made: what is behind the outputs and not before the node."""
        self._behind([node])
        self.rules.update(dict.fromkeys(self._behind([t.node for t in outputs]), rule))

    def _behind(self, nodes: list[Node]) -> list[Node]:
        """The nodes and what they read, as far as nobody asked before."""
        behind: list[Node] = []
        while nodes:
            node = nodes.pop()
            if node not in self._seen:
                self._seen.add(node)
                behind.append(node)
                nodes += [t.node for t in node.inputs]
        return behind

    def diff(self, name: str) -> Difference:
        """What a pass did to the program that the pass before it left; KeyError for another name.

        The first pass is compared with the graph's own nodes, which are those it did not make.
        """
        names = [known for known, _ in self.programs]
        if name not in names:
            raise KeyError(f"no pass named {name!r} was recorded; there are {names}")
        at = names.index(name)
        if at == 0:
            raise KeyError(f"{name!r} is the first pass; the program before it was not recorded")
        return graph_diff(self.programs[at - 1][1], self.programs[at][1], title=f"after {name}")
