"""How many floating point operations an op takes: the one table of that.

A multiplication and the addition that goes with it are two operations; an element-wise op is one
for each element it makes, whatever it computes; moving, choosing and converting data is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log2, prod
from typing import Any, NamedTuple

from ..ir.node import Node
from ..ir.op import Op
from ..ir.types import Dim, Shape, TensorType, tensor_type
from ..ops.reductions import Reduction

Length = Callable[[Dim], int]


class Case(NamedTuple):
    """An op on inputs of known types. size: the elements of a shape."""

    op: Any
    inputs: Sequence[TensorType]
    outputs: Sequence[TensorType]
    length: Length

    def size(self, t: TensorType) -> int:
        """The number of elements."""
        return prod(map(self.length, t.shape))

    def matrix(self, t: TensorType) -> tuple[int, int, int]:
        """How many matrices a stack holds, and their larger and smaller length."""
        *stack, m, n = map(self.length, t.shape)
        return prod(stack), max(m, n), min(m, n)


Cost = Callable[[Case], float]


def _made(per_element: int = 1) -> Cost:
    return lambda c: per_element * c.size(c.outputs[0])


def _read(per_element: int = 1, at: int = 0) -> Cost:
    return lambda c: per_element * c.size(c.inputs[at])


def _matmul(c: Case) -> float:
    x, y = c.inputs
    m, k = x.shape[:-3:-1] if c.op.transpose_a else x.shape[-2:]
    n = y.shape[-2] if c.op.transpose_b else y.shape[-1]
    stack = max(prod(map(c.length, t.shape[:-2])) for t in c.inputs)
    return 2 * stack * c.length(m) * c.length(n) * c.length(k)


def _einsum(c: Case) -> float:
    terms = c.op.equation.partition("->")[0].split(",")
    lengths: dict[str, int] = {}
    for term, t in zip(terms, c.inputs, strict=True):
        for letter, d in zip(term, t.shape, strict=True):
            lengths[letter] = max(lengths.get(letter, 1), c.length(d))
    moves = len(terms) == 1 and c.size(c.inputs[0]) == c.size(c.outputs[0])
    return 0 if moves else len(terms) * prod(lengths.values())


def _taps(shape: Shape, length: Length) -> int:
    """Multiplications for one element of a convolution's output: filters are (h, w, in, out)."""
    return prod(map(length, shape[:3]))


def _conv(image: int, filters: Callable[[Case], TensorType]) -> Cost:
    """image: the input that is as large as the forward output; -1 for the output itself."""
    return lambda c: (
        2
        * c.size(c.outputs[0] if image < 0 else c.inputs[image])
        * _taps(filters(c).shape, c.length)
    )


def _window(image: int) -> Cost:
    """One operation for each element under each window."""
    return lambda c: prod(c.op.window) * c.size(c.outputs[0] if image < 0 else c.inputs[image])


def _sorting(c: Case) -> float:
    n = c.length(c.inputs[0].shape[c.op.axis])
    return c.size(c.inputs[0]) * max(1, round(log2(n))) if n else 0


def _dense(large: float, square: float) -> Cost:
    """large * m * n**2 + square * n**3 for each matrix of m rows and n columns, m >= n."""

    def cost(c: Case) -> float:
        count, m, n = c.matrix(c.inputs[0])
        return count * (large * m * n**2 + square * n**3)

    return cost


def _solve(c: Case) -> float:
    count, n, _ = c.matrix(c.inputs[0])
    return count * 2 / 3 * n**3 + 2 * n * c.size(c.inputs[1])


def _summed(c: Case) -> float:
    """What is summed over; nothing where the shape stays."""
    same = c.size(c.inputs[0]) == c.size(c.outputs[0])
    return 0 if same else c.size(c.inputs[0])


def _none(c: Case) -> float:
    return 0


_COSTS: dict[str, Cost] = {
    "MatMul": _matmul,
    "Einsum": _einsum,
    "Conv2D": _conv(-1, lambda c: c.inputs[1]),
    "Conv2DBackpropInput": _conv(1, lambda c: c.inputs[0]),
    "Conv2DBackpropFilter": _conv(1, lambda c: c.outputs[0]),
    "MaxPool": _window(-1),
    "MaxPoolGrad": _window(0),
    "MaxPoolGradGrad": _window(-1),
    "AvgPool": _window(-1),
    "AvgPoolGrad": _window(0),
    "AddN": lambda c: (len(c.inputs) - 1) * c.size(c.outputs[0]),
    "SumTo": _summed,
    "SumToShape": _summed,
    "Untile": _summed,
    "Unrepeat": _summed,
    "CumSum": _read(),
    "CumProd": _read(),
    "Recurrence": _read(2),
    "ScatterAdd": _read(at=2),
    "ScatterElements": _read(at=2),
    "AddAt": _read(at=1),
    "TieShares": _read(2),
    "ArgMax": _read(),
    "ArgMin": _read(),
    "Sort": _sorting,
    "ArgSort": _sorting,
    "TopK": _sorting,
    "Softmax": _made(5),
    "LogSoftmax": _made(5),
    "SoftmaxCrossEntropyWithLogits": _read(6),
    "SparseSoftmaxCrossEntropyWithLogits": _read(6),
    "ReduceMean": _read(),
    "ReduceLogSumExp": _read(4),
    "ExpShares": _made(5),
    "EuclideanNorm": _read(2),
    "LowerHalf": _made(),
    "Mirrored": _made(),
    "Inverted": _made(2),
    "Solve": _solve,
    "Inverse": _dense(0, 2),
    "Det": _dense(0, 2 / 3),
    "Cofactors": _dense(0, 24),
    "CofactorsGrad": _dense(0, 30),
    "SLogDet": _dense(0, 2 / 3),
    "Cholesky": _dense(0, 1 / 3),
    "Eigh": _dense(0, 9),
    "Svd": _dense(6, 20),
    "SingularValues": _dense(4, -4 / 3),
    "PseudoInverse": _dense(8, 20),
    "Qr": _dense(4, -4 / 3),
}
"""By op type. Dense matrices: Golub and Van Loan 2013, "Matrix Computations", sections 5.4, 8.6."""

_FREE = frozenset(
    """
    Constant Full ZerosLike OnesLike Cast Placeholder Variable Unread
    Unslice UnsliceLike Gather GatherElements Concat Stack Roll Pad
    Tile Repeat Shift Diagonal DiagonalGrad Eye Tril Triu
    Diag OneHot OneHotLike SizeOf RandomUniform RandomNormal RandomIntegers RandomPermutation
    """.split()  # noqa: SIM905
)
"""What moves or makes data, besides views. Drawing random numbers is not counted."""


def flops_of(node: Node, length: Length) -> int | None:
    """The operations of a node, where length(d) is the number that a length stands for.

    The bodies of control flow count together, as if all of them ran. None where it is not known:
    for Python functions and for op types from elsewhere.
    """
    total = 0.0
    stack = [(node.op, [t.type for t in node.inputs], [t.type for t in node.outputs], 1)]
    while stack:
        op, inputs, outputs, times = stack.pop()
        bodies = op.bodies
        if bodies:
            for inner in (n for body in bodies for n in body.nodes):
                types = [t.type for t in inner.inputs], [t.type for t in inner.outputs]
                stack.append((inner.op, *types, times))
        elif op.type == "PerExample":
            stack.append(_one_example(op, inputs, times, length))
        else:
            cost = cost_of(op)
            if cost is None:
                return None
            total += times * cost(Case(op, inputs, outputs, length))
    return round(total)


def cost_of(op: Op) -> Cost | None:
    """What computes the operations of an op; None where that is not known."""
    found = _COSTS.get(op.type)
    if found is not None:
        return found
    if op.type in _FREE or op.view:
        return _none
    if op.elementwise:
        return _made()
    return _read() if isinstance(op, Reduction) else None


def costs_something(op: Op) -> bool:
    """Whether an op takes operations at all, or may."""
    return cost_of(op) is not _none


def _one_example(
    op: Any, inputs: Sequence[TensorType], times: int, length: Length
) -> tuple[Any, list[TensorType], list[TensorType], int]:
    """The op of a PerExample on one example, and how often it runs."""
    count = 1
    single = []
    for t, batched in zip(inputs, op.batched, strict=True):
        if batched:
            count = length(t.shape[0])
        single.append(tensor_type(t.shape[1:], t.dtype) if batched else t)
    return op.op, single, list(op.op.infer(*single)), times * count
