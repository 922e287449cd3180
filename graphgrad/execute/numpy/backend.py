"""NumPy: always there, no compiler."""

from __future__ import annotations

from typing import Any

from ...ir.node import Node
from ...ir.program import Program
from ...lower.alias import nbytes
from ...lower.binding import Writer
from ..kernels import Kernels
from ..run.planned import KernelBinding, PlannedBackend
from .groups import BLOCK, fuse_large, kind_of, written
from .kernels import KERNELS
from .sums import gather_sums


class NumpyBackend(PlannedBackend):
    """Runs a plan with NumPy: large element-wise groups in blocks, on several threads."""

    name = "numpy"
    kernels: Kernels = KERNELS

    def fuse(self, program: Program) -> Program:
        """Groups of nodes over many elements, whose blocks stay in a processor's cache, and sums of
        many small arrays."""
        sizes = [nbytes(t) or 0 for t in program.types]
        return gather_sums(fuse_large(program) if max(sizes, default=0) > BLOCK else program)

    def bind(self) -> NumpyBinding:
        """Ufuncs that are told where to write; the rest as registered with the kernels."""
        return NumpyBinding(self)


class NumpyBinding(KernelBinding):
    """What is element by element, or reduces, is written by ufuncs; equal nodes have one writer."""

    def __init__(self, backend: PlannedBackend) -> None:
        super().__init__(backend)
        self._known: dict[Any, Writer | None] = {}

    def writer(self, node: Node) -> Writer | None:
        """Calls of ufuncs, or what is registered for the op."""
        op = node.op
        if not (op.elementwise or op.traits.reduction):
            return super().writer(node)
        kind = kind_of(node)
        try:
            return self._known[kind]
        except KeyError:
            made = written(node)
        writer = None if made is None else (made.on(self._backend.threads), made.overwrites)
        self._known[kind] = writer
        return writer
