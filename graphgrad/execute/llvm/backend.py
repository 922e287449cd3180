"""LLVM: groups of nodes as compiled loops, matrix products and convolutions as compiled code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from copy import copy

from ...ir.node import Node
from ...ir.op import Op
from ...ir.program import Program
from ...lower.alias import is_static, is_view
from ...lower.binding import Writer
from ...lower.blocks import ConvolvedLoop, with_loops
from ...lower.channels_last import channels_last
from ...lower.decompose import decompose
from ...lower.fused import fuse_loops
from ...lower.loop_ir import Fused, LoopGroup, group_of_fused, group_of_one
from ...lower.plan import Plan
from ...lower.split_axes import split_axes
from ...ops.control import Scan, While
from ...ops.nn.conv2d import Convolution
from ...ops.shape.reshaping import Transpose
from ..kernels import Kernel
from ..numpy.backend import NumpyBackend, NumpyBinding
from ..run.planned import Driven
from .emit.call import possible
from .emit.jit import VERSION, host
from .kernels.accumulating import accumulation_writer
from .kernels.behind import goes_behind, writer_with_loop
from .kernels.convolving import convolution_writer, matrix_writer
from .kernels.draws import draw_writer
from .kernels.products import product_writer
from .kernels.scatters import SCATTERS, scatter_writer
from .kernels.searches import search_writer
from .kernels.swept import is_swept, sweep_writer
from .loops.groups import Kernel as CompiledGroup
from .loops.groups import kernels_of
from .loops.launch import runner
from .loops.policy import TWINS, cost, free_nodes, loops
from .machine.driven import CompiledLoop, compiled_loop

PARTS = 12_000, 800  # operands of a group; of a part of a longer one, which LLVM is slow with
FAST = "reassoc nsz arcp contract"
_FILLERS = search_writer, draw_writer, accumulation_writer
_MAKERS = product_writer, sweep_writer, scatter_writer, *_FILLERS


class LlvmBackend(NumpyBackend):
    """Compiles what can run as loops with LLVM; what it leaves is run by NumPy."""

    name = "llvm"
    packs = True  # matrices and filters that stay the same, into memory of their own

    def __init__(
        self,
        check: bool | None = None,
        *,
        num_threads: int | None = None,
        fast_math: bool = False,
        exact: bool = False,
    ) -> None:
        super().__init__(check, num_threads=num_threads, fast_math=fast_math, exact=exact)
        self.flags = FAST if self.fast_math else ""
        self._loop_of = loops(host())

    def frugal(self) -> LlvmBackend:
        """This one, but that takes no memory for speed alone."""
        backend = copy(self)
        backend.packs = False
        return backend

    def fuse(self, program: Program) -> Program:
        """Loops as Fused nodes."""
        program = split_axes(decompose(channels_last(program), is_swept))
        free = free_nodes(program).__contains__
        program = fuse_loops(program, self._loop_of, free, 1, PARTS, TWINS, cost)
        kernels_of(filter(None, map(self.group, program.nodes)), self.flags)  # all at once
        return with_loops(program, self._goes_behind)

    def _goes_behind(self, conv: Node, loop: Node) -> bool:
        group, kernel = self.group(loop), self.kernel_of(loop)
        return group is not None and kernel is not None and goes_behind(conv, loop, group, kernel)

    def kernel_of(self, node: Node) -> CompiledGroup | None:
        """The compiled group that a node is."""
        group = self.group(node)
        return None if group is None else kernels_of([group], self.flags)[group]

    def describe(self) -> str:
        """`llvm (LLVM 22.1.0 for znver5, vectors of 512 bits, ...)`."""
        target = host()
        functions = "own vector functions" if target.fma else "NumPy's functions: no FMA here"
        calls = "built-in calls" if possible() else "calls by ctypes"
        bits = 8 * target.width
        return f"llvm ({VERSION} for {target.cpu}, vectors of {bits} bits, {functions}, {calls})"

    def notes(self, plan: Plan) -> list[str]:
        """What a plan leaves to NumPy: `run by NumPy: 3 Sort, TopK`."""
        counted = Counter([n.type for n in _run_by(plan) if not self._compiles(n)])
        rows = [f"{count} {name}" if count > 1 else name for name, count in sorted(counted.items())]
        return [f"run by NumPy: {', '.join(rows)}"] if rows else []

    def _compiles(self, node: Node) -> bool:
        return self.group(node) is not None or self.function_of(node) is not None

    def function_of(self, node: Node) -> Kernel | None:
        """What writes the result of a node with static types, where that is compiled alone."""
        if isinstance(node.op, ConvolvedLoop):
            loop = self.kernel_of(node.op.program.nodes[1])
            assert loop is not None
            return writer_with_loop(node, loop, self.threads, self.packs, self.exact)
        made = (
            convolution_writer(node, self.threads, self.packs, self.exact),
            matrix_writer(node, self.threads, self.packs),
            *[make(node, self.threads) for make in _MAKERS],
        )
        return next(filter(None, made), None)

    def group(self, node: Node) -> LoopGroup | None:
        """What a node computes, where that is compiled."""
        if isinstance(node.op, ConvolvedLoop):
            return None
        if isinstance(node.op, Fused):
            return group_of_fused(node.op)
        loop = self._loop_of(node)
        return None if loop is None else group_of_one(node, loop.shape)

    def bind(self) -> LlvmBinding:
        """Compiled loops and products; NumPy for the rest."""
        return LlvmBinding(self)


def _run_by(plan: Plan) -> Iterator[Node]:
    """The nodes that kernels run, those of branches too; not what waits for its lengths."""
    for step in plan.steps:
        node = step.node
        if not is_view(node) and not node.op.bodies and is_static(node):
            yield node
    for _, body in plan.bodies:
        for inner in body.plans:
            yield from _run_by(inner)


class LlvmBinding(NumpyBinding):
    """Writers of what is compiled."""

    def __init__(self, backend: LlvmBackend) -> None:
        super().__init__(backend)
        self._llvm = backend
        self._groups: dict[Node, LoopGroup | None] = {}
        self._runs: dict[LoopGroup, Writer] = {}
        self._compiled: list[CompiledLoop] = []

    def writer(self, node: Node) -> Writer | None:
        """Compiled code, or NumPy's writer."""
        group = self._group(node)
        if group is None:
            function = self._llvm.function_of(node)
            if function is None:
                return super().writer(node)
            return function, self._llvm.kernels.overwrites(node)
        cached = self._runs.get(group)
        if cached is None:
            kernel = kernels_of([group], self._llvm.flags)[group]
            run = runner(kernel, self._llvm.threads)
            cached = self._runs[group] = run, kernel.shared.overwrites
        return cached

    def _control(self, op: Op) -> Kernel:
        """A loop of compiled steps runs as one call."""
        driven = super()._control(op)
        return self._loop(op, driven, False) if isinstance(op, Scan | While) else driven

    def _scan_writer(self, op: Scan) -> Kernel:
        """The same, into arrays that are there."""
        return self._loop(op, super()._scan_writer(op), True)

    def _loop(self, op: Scan | While, driven: Kernel, there: bool) -> Kernel:
        if self._llvm.check:
            self._loops[op] = Driven("check=True looks at every step")
            return driven
        compiled = compiled_loop(
            op, self._bodies_of(op), self._kernel_of, driven, there=there, packs=self._llvm.packs
        )
        if isinstance(compiled, str):
            self._loops[op] = Driven(compiled)
            return driven
        self._loops[op] = compiled
        self._compiled.append(compiled)
        return compiled

    def release(self) -> None:
        """Give back the memory of loops, too."""
        super().release()
        for loop in self._compiled:
            loop.release()

    def _kernel_of(self, node: Node) -> CompiledGroup | None:
        """The compiled group that a node is."""
        return self._llvm.kernel_of(node)

    def lean(self, node: Node) -> bool:
        """Not where indices, updates or turned images have to be copied."""
        turned = any(type(t.node.op) is Transpose for t in node.inputs)
        convolves = isinstance(node.op, Convolution | ConvolvedLoop)
        return type(node.op) not in SCATTERS and not (turned and convolves)

    def quiet(self, node: Node) -> bool:
        """Compiled code never sets off NumPy's warnings."""
        compiled = self._group(node) is not None or isinstance(node.op, ConvolvedLoop)
        return compiled or super().quiet(node)

    def _group(self, node: Node) -> LoopGroup | None:
        if node not in self._groups:
            self._groups[node] = self._llvm.group(node)
        return self._groups[node]
