"""Whether a piece of graph is linear: the analysis that forward mode rests on.

Forward over the nodes, one at a time. Each tensor is one of four: constant (it does not depend on
what varies), zero (known to be, without looking at a value), linear in what varies, or neither,
which ends the analysis. Only the structure counts: marks, regions and whether a gradient passes do
not, so `stop_gradient` is linear as the identity is. What is affine (dy * 2 + x) is not linear.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from ..ir.graph import Graph
from ..ir.node import Node, Tensor
from ..ir.program import Program
from ..ops.base import Constant, Full, OnesLike, ZerosLike, ZeroTensor
from ..ops.control import Cond, Scan, While
from ..ops.identities.sequencing import After

CONSTANT, ZERO, LINEAR = "constant", "zero", "linear"


class NonLinear(Exception):
    """The first node that is not linear in what varies, and how."""

    def __init__(self, node: Node, how: str) -> None:
        super().__init__(f"{node.name} ({node.where}) {how}")
        self.node = node
        self.how = how


def check_linear(
    outputs: Sequence[Tensor],
    inputs: Collection[Tensor],
    known: Mapping[Tensor, Sequence[Tensor]] | None = None,
) -> None:
    """NonLinear unless every output is linear in the inputs together.

    known  tensor -> tensors in which it is linear, by declaration: what lies between is not seen
    """
    analysis = Analysis(inputs, known or {})
    analysis.visit(_between(outputs, analysis))
    for y in outputs:
        if analysis.of(y) == CONSTANT:
            raise NonLinear(y.node, "does not depend on it, and is not zero")


class Analysis:
    """What is known of each tensor.

    found   tensor -> CONSTANT, ZERO or LINEAR
    lowest  by graph: what stands before this place depends on nothing that varies
    known   tensor -> the tensors in which it is declared to be linear
    """

    def __init__(self, inputs: Iterable[Tensor], known: Mapping[Tensor, Sequence[Tensor]]) -> None:
        self.found = {t: ZERO if isinstance(t, ZeroTensor) else LINEAR for t in inputs}
        self.known = known
        self.lowest: dict[Graph | None, int] = {}
        for t in self.found:
            if not isinstance(t, ZeroTensor) or t._made is not None:
                graph, index = t.graph, t.node.index
                self.lowest[graph] = min(index, self.lowest.get(graph, index))

    def of(self, t: Tensor) -> str:
        """What t is; a tensor that was not visited stands before everything that varies."""
        kind = self.found.get(t)
        return kind if kind is not None else ZERO if is_zeros(t) else CONSTANT

    def visit(self, nodes: Iterable[Node]) -> None:
        """Note what the outputs of nodes are, inputs first; NonLinear at the first that is not."""
        for node in nodes:
            for t, kind in zip(node.outputs, self._outputs(node), strict=True):
                if t in self.known:
                    kind = self._joint(node, [self.of(x) for x in self.known[t]])
                self.found.setdefault(t, kind)

    def _outputs(self, node: Node) -> list[str]:
        """What the outputs of a node are."""
        count = len(node.outputs)
        if all(t in self.found or t in self.known for t in node.outputs):
            return [CONSTANT] * count
        kinds = [self.of(t) for t in node.inputs]
        for place in node.op.shape_only:
            if place < len(kinds):
                kinds[place] = CONSTANT
        if isinstance(node.op, After):  # the others say when, not what
            return kinds[:1]
        if isinstance(node.op, Cond):
            return self._choice(node, node.op, kinds)
        if isinstance(node.op, Scan):
            return self._scan(node, node.op, kinds)
        if isinstance(node.op, While):
            return self._while(node, node.op, kinds)
        if LINEAR not in kinds and ZERO not in kinds:
            return [ZERO if is_zeros(t) else CONSTANT for t in node.outputs]
        return [self._kind(node, t, kinds) for t in node.outputs]

    def _kind(self, node: Node, t: Tensor, kinds: list[str]) -> str:
        """What one output is, where some input is linear or zero."""
        linear = node.op.linear
        if linear and LINEAR in kinds and not t.type.differentiable:
            raise NonLinear(node, f"converts it to {t.type!r}")
        if linear == "joint":
            return self._joint(node, kinds)
        if linear == "each":
            return _product(node, kinds)
        assert not isinstance(linear, str)
        inside = [kinds[i] for i in linear if i < len(kinds)]
        outside = [k for i, k in enumerate(kinds) if i not in linear]
        if LINEAR in outside:
            raise NonLinear(node, "is not linear in it")
        return self._joint(node, inside) if inside else CONSTANT

    def _joint(self, node: Node, kinds: Sequence[str]) -> str:
        """Of a map that is linear in all of these together."""
        if LINEAR not in kinds:
            return CONSTANT if CONSTANT in kinds or not kinds else ZERO
        if CONSTANT in kinds:
            raise NonLinear(node, "adds a term that does not depend on it, so it is affine")
        return LINEAR

    def _choice(self, node: Node, op: Cond, kinds: list[str]) -> list[str]:
        """Of a choice: linear where both bodies are, in what they read."""
        if kinds[0] == LINEAR:
            raise NonLinear(node, "chooses a branch by it")
        branches = []
        for program, reads in zip(op.programs, op.reads, strict=True):
            branches.append(self._body(program, [kinds[1 + i] for i in reads]))
        how = "depends on it in one branch and is constant in the other"
        return [_either(node, how, *pair) for pair in zip(*branches, strict=True)]

    def _scan(self, node: Node, op: Scan, kinds: list[str]) -> list[str]:
        """Of a loop: linear where each run is, in what it takes."""
        (program,) = op.programs
        carries, output_kinds = self._carried(node, program, op.carries, kinds)
        return [*carries, *output_kinds[op.carries :], *(carries[i] for i in op.history)]

    def _while(self, node: Node, op: While, kinds: list[str]) -> list[str]:
        """Of a loop that a test ends: linear where each run is, and the test asks for nothing."""
        test, program = op.programs
        carries, _ = self._carried(node, program, op.carries, kinds)
        if LINEAR in self._body(test, [*carries, *kinds[op.carries :]]):
            raise NonLinear(node, "stops by it")
        return [*carries, *(carries[i] for i in op.history), CONSTANT]

    def _carried(
        self, node: Node, program: Program, count: int, kinds: list[str]
    ) -> tuple[list[str], list[str]]:
        """What the carries are in every run, and what a run makes of that."""
        carries = kinds[:count]
        how = "carries a value that depends on it in a carry that began as a constant"
        while True:
            output_kinds = self._body(program, [*carries, *kinds[count:]])
            pairs = zip(carries, output_kinds, strict=False)
            joined = [_either(node, how, *pair) for pair in pairs]
            if joined == carries:
                return carries, output_kinds
            carries = joined

    def _body(self, program: Program, kinds: Sequence[str]) -> list[str]:
        """What the outputs of a body are, where its inputs are these."""
        self.found.update(zip(program.inputs, kinds, strict=True))
        nodes = _between(program.outputs, self)
        self.visit(nodes)
        output_kinds = [self.of(t) for t in program.outputs]
        for t in (*program.inputs, *(t for n in nodes for t in n.outputs)):
            self.found.pop(t, None)  # the same nodes may be in another body's program
        return output_kinds


def _either(node: Node, how: str, one: str, other: str) -> str:
    """Of what is one or the other; how: what is wrong where it may be linear, and constant."""
    if LINEAR in (one, other) and CONSTANT in (one, other):
        raise NonLinear(node, how)
    return one if other == ZERO else other


def _product(node: Node, kinds: Sequence[str]) -> str:
    """Of a map that is linear in each of these while the others stay."""
    if ZERO in kinds:
        return ZERO
    if kinds.count(LINEAR) > 1:
        raise NonLinear(node, "multiplies it with itself")
    return LINEAR if LINEAR in kinds else CONSTANT


def is_zeros(t: Tensor) -> bool:
    """Whether t is all zeros, as its node says."""
    if isinstance(t, ZeroTensor):
        return True
    op = t.node.op
    if isinstance(op, Full):
        return bool(op.value == 0)
    if isinstance(op, Constant):
        return not op.value.any()
    return isinstance(op, ZerosLike) and not isinstance(op, OnesLike)


def _between(outputs: Sequence[Tensor], analysis: Analysis) -> list[Node]:
    """The nodes between what varies and the outputs, inputs first."""
    seen: set[Node] = set()
    stack = list(outputs)
    while stack:
        t = stack.pop()
        if t in analysis.found or isinstance(t, ZeroTensor):
            continue
        node = t.node
        if node in seen or node.index < analysis.lowest.get(node.graph, 0):
            continue
        seen.add(node)
        for made in node.outputs:
            stack.extend(analysis.known.get(made, ()))
        if any(made not in analysis.known for made in node.outputs):
            stack.extend(_read(node))
    return sorted(seen, key=_index)


def _read(node: Node) -> Sequence[Tensor]:
    """The inputs whose values count, not their shapes alone or that they are there."""
    if isinstance(node.op, After):
        return node.inputs[:1]
    shapes = node.op.shape_only
    return [t for i, t in enumerate(node.inputs) if i not in shapes] if shapes else node.inputs


def _index(node: Node) -> int:
    return node.index
