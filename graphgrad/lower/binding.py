"""What planning asks of a backend: the kernels of nodes, and where they can write."""

from __future__ import annotations

from typing import Protocol

from ..ir.node import Node
from .plan import BodyPlans, Kernel

__all__ = ["Binding", "Kernel", "Pairs", "Writer"]

Pairs = tuple[tuple[int, int], ...]


Writer = tuple[Kernel, Pairs]
"""What writes the results of a node, and over which inputs it may.

kernel      k(*inputs, *outs): writes every output of the node; what it returns does not matter.
            inputs have the node's types and any strides, 0 and below included. outs are
            C-contiguous arrays of the promised types that overlap no input, except as `overwrites`
            allows
overwrites  (output, input) places that may be one buffer: the kernel reads each element of the
            input before it writes the same element of the output, and never again
"""


class Binding(Protocol):
    """What a backend offers for the nodes of a program.

    A node with static types is run by its writer where it has one, since the plan says where
    results go; otherwise by its kernel. Calls from many threads at once must be safe.
    """

    def writer(self, node: Node) -> Writer | None:
        """What writes the results of a node of static types: (kernel, overwrites) as in `Writer`.

        kernel(*inputs, *outs) writes every output. overwrites are the (output, input) places that
        may be one buffer: it reads each element of the input before it writes that of the output.
        """
        ...

    def kernel(self, node: Node) -> Kernel:
        """k(*inputs): the output, or a tuple of them, as arrays in new memory.

        Where `alias.is_view(node)`, they may be views of the first input, or that itself.
        """
        ...

    def quiet(self, node: Node) -> bool:
        """Whether what runs for the node never sets off NumPy's floating-point warnings."""
        ...

    def lean(self, node: Node) -> bool:
        """Whether the node's writer takes next to no memory."""
        ...

    def bodies(self, node: Node) -> tuple[BodyPlans, ...]:
        """The programs that the node's kernel runs, one of them at a time."""
        ...

    def release(self) -> None:
        """Give back the memory that waits for the next run of these."""
        ...
