"""An op applied to every example of a batch: the general way, for ops without a batched form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

from ..base.errors import ShapeError
from ..base.lazy import LazyMethod
from ..ir.types import Dim, lengths, merge_dims
from .base import Any, Derivative, Op, TensorType, Types, tensor_type
from .onnx_loops import scanned

__all__ = ["PerExample"]


class PerExample(Op):
    """ys[i] = op(xs[i]) along the first axis of the inputs that are batched; the others are shared.

    Gradient: that of the op, per example (differentiate.vmap), summed for shared inputs.
    """

    op: Op
    batched: tuple[bool, ...]
    derivative = Derivative(linear_zero=False)

    @property
    def pure(self) -> bool:  # type: ignore[override]
        """Whether the op is."""
        return self.op.pure

    @property
    def linear(self) -> str | tuple[int, ...]:  # type: ignore[override]
        """Where the op is linear."""
        return self.op.linear

    @property
    def runs(self) -> tuple[Op, ...]:  # type: ignore[override]
        """The op."""
        return (self.op,)

    @property
    def shape_only(self) -> tuple[int, ...]:  # type: ignore[override]
        """What the op reads for its shape alone."""
        return self.op.shape_only

    def infer(self, *types: TensorType) -> Types:
        count: Dim = None
        single = []
        for t, batched in zip(types, self.batched, strict=True):
            if batched:
                count = merge_dims(count, t.shape[0])
                t = _without_first(t)
            single.append(t)
        return tuple(tensor_type((count, *t.shape), t.dtype) for t in self.op.infer(*single))

    def kernel(self, xp: Any, *arrays: Any) -> Any:
        return self.each(xp, partial(self.op.kernel, xp), arrays)

    def each(self, xp: Any, kernel: Callable[..., Any], arrays: Sequence[Any]) -> Any:
        """The outputs of a kernel of the op for each example, stacked."""
        counts = {a.shape[0] for a, batched in zip(arrays, self.batched, strict=True) if batched}
        if len(counts) != 1:
            raise ShapeError(f"the batched inputs of {self.op!r} have {sorted(counts)} examples")
        rows = []
        for i in range(counts.pop()):
            outputs = kernel(*[a[i] if b else a for a, b in zip(arrays, self.batched, strict=True)])
            rows.append(outputs if isinstance(outputs, tuple) else (outputs,))
        if not rows:
            return self._empty(xp, arrays)
        columns = tuple(xp.stack(column) for column in zip(*rows, strict=True))
        return columns[0] if len(columns) == 1 else columns

    vjp: ClassVar[Any] = LazyMethod("graphgrad.differentiate.vmap.vmap")

    def to_onnx(self, to: Any, *xs: Any) -> Any:
        """A loop that carries nothing."""
        rows = [x for x, batched in zip(xs, self.batched, strict=True) if batched]

        def run(to: Any, *given: Any) -> Any:
            supply = iter(given)
            inputs = [next(supply) if b else x for x, b in zip(xs, self.batched, strict=True)]
            made = to.apply(self.op, *inputs)
            return made if isinstance(made, tuple) else (made,)

        return scanned(to, run, (), rows, self.infer(*map(to.type_of, xs)))

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """Those of the op, as often as it runs."""
        pairs = zip(inputs, self.batched, strict=True)
        single = tuple([_without_first(t) if batched else t for t, batched in pairs])
        one = self.op.flops(single, tuple(map(_without_first, outputs)))
        return None if one is None else lengths(outputs[0])[0] * one

    def _empty(self, xp: Any, arrays: Sequence[Any]) -> Any:
        """The outputs for no example at all."""
        types = self.infer(*(tensor_type(tuple(a.shape), a.dtype) for a in arrays))
        made = tuple(xp.zeros(t.shape, t.dtype) for t in types)
        return made[0] if len(made) == 1 else made


def _without_first(t: TensorType) -> TensorType:
    return tensor_type(t.shape[1:], t.dtype)
