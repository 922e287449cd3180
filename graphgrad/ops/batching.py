"""What an op is given to build itself for a batch: tensors with a batch axis, and shared ones."""

from __future__ import annotations

from typing import Protocol

from .base import Op, Tensor, TensorType

__all__ = ["Batch", "Outputs"]

Outputs = tuple[Tensor, ...]


class Batch(Protocol):
    """The inputs of an op for a batch of examples.

    inputs  tensors as they are in the batch
    flags   which of them have the batch axis, in front; the others are shared by all examples
    """

    inputs: tuple[Tensor, ...]
    flags: tuple[bool, ...]

    @property
    def types(self) -> tuple[TensorType, ...]:
        """The types of one example of the inputs."""

    @property
    def alike(self) -> bool:
        """Whether these have one shape."""

    def of(self, inputs: Outputs, flags: tuple[bool, ...]) -> Batch:
        """The same examples of other inputs."""

    def every(self, *places: int) -> Outputs:
        """The inputs at these places (all of them if none is named), shared ones repeated."""

    def aligned(self, *places: int) -> Outputs:
        """These with one rank behind the batch axis, so that they broadcast as one example's do."""

    def repeated(self, t: Tensor) -> Tensor:
        """A shared tensor once for every example."""

    def numbers(self) -> Tensor:
        """0, 1, 2, ...: the number of every example, as int64."""

    def summed(self, t: Tensor, axes: tuple[int, ...]) -> Tensor:
        """t summed over axes, which stay with length 1."""

    def build(self, op: Op, *inputs: Tensor) -> Outputs:
        """The outputs of op(*inputs)."""
