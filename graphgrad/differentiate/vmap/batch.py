"""Tensors with a batch axis in front, and such as all examples share: what ops need of both."""

from __future__ import annotations

from ...ir.build import apply, build
from ...ir.node import Tensor
from ...ir.op import Op
from ...ir.types import TensorType, tensor_type
from ...ops.base import Full, OnesLike, as_dtype, cast
from ...ops.elementwise.arithmetic import multiply
from ...ops.elementwise.complex_parts import real
from ...ops.per_example import PerExample
from ...ops.reduce.cumulative import CumSum
from ...ops.reduce.reductions import ReduceSum, sum
from ...ops.shape.reshaping import BroadcastTo, ExpandDims, expand_dims
from ...ops.sources import stop_gradient

Inputs = tuple[Tensor, ...]
Flags = tuple[bool, ...]


def batched_outputs(op: Op, inputs: Inputs, flags: Flags) -> Inputs:
    """The outputs of an op for a batch: a node or few where the op has a batched form."""
    outputs: Inputs | None = op.batch(Batched(inputs, flags))
    return build(PerExample(op, flags), inputs).outputs if outputs is None else outputs


class Batched:
    """The inputs of an op for a batch of examples, as `ops.batching.Batch` says.

    like  a tensor whose first axis counts the examples
    """

    def __init__(self, inputs: Inputs, flags: Flags, like: Tensor | None = None) -> None:
        self.inputs = inputs
        self.flags = flags
        self.like = inputs[flags.index(True)] if like is None else like

    @property
    def types(self) -> tuple[TensorType, ...]:
        """The types of one example of the inputs."""
        pairs = zip(self.inputs, self.flags, strict=True)
        return tuple([tensor_type(t.shape[flag:], t.dtype) for t, flag in pairs])

    @property
    def alike(self) -> bool:
        """Whether these have one shape."""
        return len({t.shape for t in self.types}) == 1

    def of(self, inputs: Inputs, flags: Flags) -> Batched:
        """The same examples of other inputs."""
        return Batched(inputs, flags, self.like)

    def every(self, *places: int) -> Inputs:
        """The inputs at these places (all of them if none is named), shared ones repeated."""
        return tuple([t if flag else self.repeated(t) for t, flag in self._at(places)])

    def aligned(self, *places: int) -> Inputs:
        """These with one rank behind the batch axis, so that they broadcast as one example's do."""
        return aligned(*zip(*self._at(places), strict=True))

    def repeated(self, t: Tensor) -> Tensor:
        """A shared tensor once for every example."""
        return repeated(t, self.like)

    def numbers(self) -> Tensor:
        """0, 1, 2, ...: the number of every example, as int64."""
        return apply(CumSum(0, False, True), cast(_ones(self.like), "int64"))

    def summed(self, t: Tensor, axes: tuple[int, ...]) -> Tensor:
        """t summed over axes, which stay with length 1."""
        return apply(ReduceSum(axes, True), t)

    def build(self, op: Op, *inputs: Tensor) -> Inputs:
        """The outputs of op(*inputs)."""
        return build(op, inputs).outputs

    def _at(self, places: tuple[int, ...]) -> list[tuple[Tensor, bool]]:
        pairs = list(zip(self.inputs, self.flags, strict=True))
        return [pairs[i] for i in places] if places else pairs


def aligned(inputs: tuple[Tensor, ...], flags: tuple[bool, ...]) -> tuple[Tensor, ...]:
    """Operands of one rank behind the batch axis, so that they broadcast as one example's do."""
    ranks = [t.ndim - flag for t, flag in zip(inputs, flags, strict=True)]
    most = max(ranks)
    return tuple(
        apply(ExpandDims(tuple(range(1, 1 + most - rank))), t) if flag and rank < most else t
        for t, flag, rank in zip(inputs, flags, ranks, strict=True)
    )


def repeated(t: Tensor, like: Tensor) -> Tensor:
    """t once for every example of `like`, whose first axis counts them."""
    count = like.shape[0]
    if count is not None and None not in t.shape:
        return apply(BroadcastTo((count, *t.shape)), t)
    row = expand_dims(cast(_ones(like), t.dtype), tuple(range(1, 1 + t.ndim)))
    return multiply(row, expand_dims(t, 0))


def counting(like: Tensor) -> Tensor:
    """A tensor whose first axis counts the examples of `like`, for `repeated`.

    Where it is read for their number, nothing flows to it.
    """
    return stop_gradient(_ones(like)) if like.shape[0] is None else like


def _ones(like: Tensor) -> Tensor:
    """A one for every example, of a real dtype."""
    count = like.shape[0]
    if count is not None:
        return apply(Full((count,), 1, as_dtype("int64")))
    if like.ndim > 1:
        like = sum(like[:, :0], axis=tuple(range(1, like.ndim)))
    return apply(OnesLike(), real(like))
