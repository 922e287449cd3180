"""NumPy: always there, no compiler."""

from __future__ import annotations

from ...ir.node import Node
from ...ir.op import Op
from ...ir.program import Program
from ...lower.alias import nbytes
from ..kernels import Kernel, Kernels, Pairs
from ..run.planned import KernelBinding, PlannedBackend
from .groups import BLOCK, fuse_large
from .kernels import KERNELS, element_overwrites, element_writer
from .sums import gather_sums


class NumpyBackend(PlannedBackend):
    """Runs a plan with NumPy: large element-wise groups in blocks, on several threads."""

    name = "numpy"
    kernels: Kernels = KERNELS

    def fuse(self, program: Program) -> Program:
        """Groups of nodes over many elements, whose blocks stay in a processor's cache, and sums of
        many small arrays."""
        sizes = [nbytes(t.type) or 0 for node in program.nodes for t in node.inputs + node.outputs]
        return gather_sums(fuse_large(program) if max(sizes, default=0) > BLOCK else program)

    def bind(self) -> NumpyBinding:
        """Ufuncs that are told where to write; the rest as registered with the kernels."""
        return NumpyBinding(self)


class NumpyBinding(KernelBinding):
    """What is element by element, or reduces, is written by ufuncs."""

    def writer(self, node: Node) -> Kernel | None:
        """Calls of ufuncs, or what is registered for the op."""
        if _by_ufuncs(node.op):
            return element_writer(node, self._backend.threads)
        return super().writer(node)

    def overwrites(self, node: Node) -> Pairs:
        """As the writer allows."""
        return element_overwrites(node) if _by_ufuncs(node.op) else super().overwrites(node)


def _by_ufuncs(op: Op) -> bool:
    return op.elementwise or op.traits.reduction is not None
