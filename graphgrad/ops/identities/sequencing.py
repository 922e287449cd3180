"""The order of execution where data dependencies do not determine it."""

from __future__ import annotations

from ..base import (
    NO_GRAD,
    Any,
    Derivative,
    Gradients,
    Memory,
    Node,
    Op,
    Samples,
    Tensor,
    TensorType,
    Types,
    np,
)
from ..batching import Batch, Outputs

__all__ = ["After"]


class After(Op):
    """y = x, once the other inputs are there. Gradient: dx = dy, nothing for the others.

    What is computed from y is not the same as what was computed from x before, so no pass merges
    the two. A backend that optimises by itself must not do so either.
    """

    memory = Memory(view=True)
    linear = (0,)
    derivative = Derivative(relevance="moved")

    def infer(self, x: TensorType, *others: TensorType) -> Types:
        return (x,)

    def kernel(self, xp: Any, x: Any, *others: Any) -> Any:
        return x

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return dy, *(NO_GRAD,) * (len(node.inputs) - 1)

    def batch(self, batch: Batch) -> Outputs:
        """x of every example, once the others are there."""
        return batch.build(self, *batch.every(0), *batch.inputs[1:])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [rng.normal(size=(2, 3)), rng.normal(size=())]
        yield cls(), [rng.normal(size=())]
