"""The kernels of a backend, and the simplest way to run a program with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.program import Program
from ..ir.types import Array, tensor_type
from ..lower.alias import is_strange
from ..lower.binding import Pairs
from ..lower.plan import Kernel
from ..lower.specialise import specialise, with_lengths
from ..lower.widen import widen
from .results import add_note, own, promised, reading

__all__ = [
    "ArrayFunction",
    "Kernel",
    "Kernels",
    "Pairs",
    "PartialKernel",
    "TupleKernel",
    "one_call_per_node",
]

SIZES = 16  # sets of shapes for which what runs is kept
ArrayFunction = Callable[..., tuple[Array, ...]]
Make = Callable[[Any], Kernel | None]
MakeWriter = Callable[[Node, int], Kernel | None]
Overwrites = Callable[[Node], Pairs]


class PartialKernel:
    """A kernel that is fn(*inputs, *own, output): the code of a plan calls fn itself."""

    def __init__(self, fn: Kernel, *own: Any) -> None:
        self.fn, self.own = fn, own

    def __call__(self, *arrays: Any) -> Any:
        """As fn does."""
        return self.fn(*arrays[:-1], *self.own, arrays[-1])


class TupleKernel:
    """A kernel that is fn((*inputs,), output): the code of a plan makes the tuple itself."""

    def __init__(self, fn: Callable[[Sequence[Any], Any], object]) -> None:
        self.fn = fn

    def __call__(self, *arrays: Any) -> Any:
        """As fn does."""
        return self.fn(arrays[:-1], arrays[-1])


class Kernels:
    """Every op's kernel in one array namespace, and what a backend does better.

    `@kernels.override(Tanh)` decorates a function of the op that returns a callable of arrays, or
    None to leave this op as it is. `@kernels.writes(Tanh)` decorates a function of a node with
    static types and of a number of threads that returns a writer (see `Binding`) or None. Both
    apply to this op type only, not to subclasses.

    native  op types whose kernels compute of bfloat16 operands in float32 themselves, and round
            once; for the others they are cast

    Parameters: xp: the namespace that kernels are run with, such as numpy or jax.numpy.
    """

    native: frozenset[type[Op]] = frozenset()

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self._overrides: dict[type[Op], Make] = {}
        self._writers: dict[type[Op], tuple[MakeWriter, Overwrites]] = {}

    def override(self, op_type: type[Op]) -> Callable[[Make], Make]:
        """Register what stands for the kernel of one op type."""

        def register(make: Make) -> Make:
            self._overrides[op_type] = make
            return make

        return register

    def writes(
        self, op_type: type[Op], overwrites: Overwrites = lambda node: ()
    ) -> Callable[[MakeWriter], MakeWriter]:
        """Register what writes the results of one op type, and over which of its inputs it may."""

        def register(make: MakeWriter) -> MakeWriter:
            self._writers[op_type] = make, overwrites
            return make

        return register

    def writer_of(self, node: Node, threads: int) -> Kernel | None:
        """What writes the results of a node into given arrays, where that is registered."""
        entry = self._writers.get(type(node.op))
        return None if entry is None else entry[0](node, threads)

    def overwrites(self, node: Node) -> Pairs:
        """(output, input) places for which that writer may be given one buffer."""
        entry = self._writers.get(type(node.op))
        return () if entry is None else entry[1](node)

    def of(self, op: Op) -> Kernel:
        """The callable of arrays for one op."""
        make = self._overrides.get(type(op))
        kernel = None if make is None else make(op)
        return partial(op.kernel, self.xp) if kernel is None else kernel

    def of_node(self, node: Node) -> Kernel:
        """The callable of arrays for one node: that for its op."""
        return self.of(node.op)


def one_call_per_node(
    program: Program, kernels: Kernels, refine: Callable[[Program], Program] = lambda p: p
) -> ArrayFunction:
    """The simplest way to run a program: a loop over its nodes, each value dropped in time.

    refine: what optimises a program whose ops had open lengths, where these have become known.
    """
    if program.open_lengths:
        return _for_sizes(program, kernels, refine)
    return _straight(program, kernels)


def _straight(program: Program, kernels: Kernels) -> ArrayFunction:
    """The loop over the nodes."""
    program = widen(program, kernels.native)
    run = _loop(program, [_held_to_its_word(node, kernels) for node in program.nodes])
    if kernels.xp is not np:  # what is being traced owns nothing
        return run
    wanted = program.outputs

    def owned(*arrays: Array) -> tuple[Array, ...]:
        return own(run(*arrays), arrays, wanted)

    return owned


def _for_sizes(
    program: Program, kernels: Kernels, refine: Callable[[Program], Program]
) -> ArrayFunction:
    """What runs a program whose ops have open lengths, once for each set of shapes.

    JAX may give arrays of less bits than were promised, and of shapes with lengths of its own.
    """
    dtypes = [t.dtype for t in program.inputs]

    @lru_cache(SIZES)
    def sized(*shapes: Any) -> ArrayFunction:
        types = [tensor_type(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
        if all(t.static for t in types):
            return _straight(refine(specialise(program, types)), kernels)
        return _straight(with_lengths(program, shapes), kernels)

    def run(*arrays: Array) -> tuple[Array, ...]:
        return sized(*[a.shape for a in arrays])(*arrays)

    return run


def _held_to_its_word(node: Node, kernels: Kernels) -> Kernel:
    """The kernel of a node; what is not of this library is checked, and cannot write into NumPy's
    arrays that it reads."""
    kernel = kernels.of_node(node)
    if not is_strange(node.op):
        return kernel
    if kernels.xp is np and not node.op.bodies:
        kernel = reading(kernel)
    return promised(kernel, node)


def _loop(program: Program, kernels: Sequence[Kernel]) -> ArrayFunction:
    rows = list(zip(program.nodes, kernels, _done_with(program), strict=True))

    def run(*arrays: Array) -> tuple[Array, ...]:
        values: dict[Tensor, Any] = dict(zip(program.inputs, arrays, strict=True))
        for node, kernel, gone in rows:
            args = [values[t] for t in node.inputs]
            try:
                made = kernel(*args)
            except Exception as error:
                add_note(error, node, args)
                raise
            parts = made if len(node.outputs) > 1 else (made,)
            for t, one in zip(node.outputs, parts, strict=True):
                values.setdefault(t, one)  # an input keeps the value that was given
            for t in gone:
                del values[t]
        return tuple([values[t] for t in program.outputs])

    return run


def _done_with(program: Program) -> list[list[Tensor]]:
    """For each node, the values that nothing reads after it."""
    read = {*program.inputs, *program.outputs}
    freed: list[list[Tensor]] = []
    for node in reversed(program.nodes):
        gone = [t for t in dict.fromkeys((*node.inputs, *node.outputs)) if t not in read]
        read.update(node.inputs)
        freed.append(gone)
    return freed[::-1]
