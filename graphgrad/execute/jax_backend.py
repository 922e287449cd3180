"""JAX: the same kernels, traced by jax.jit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import jax.scipy.special
import numpy as np
from jax.experimental import io_callback

from ..ir.errors import DeviceError
from ..ir.kinds import FLOAT32, is_bfloat16, is_floating, kind_of
from ..ir.node import Node, Tensor
from ..ir.op import OP_TYPES, Op
from ..ir.program import Program
from ..ir.types import TensorType, tensor_type
from ..lower.alias import is_strange
from ..ops.base import Cast
from ..ops.control import Cond, Scan, While
from ..ops.cumulative import Recurrence
from ..ops.linalg.eigenvalues import EigenvaluesH, Eigh
from ..ops.linalg.exponentials import MatrixExp, MatrixExpDerivative, Quarter, with_corner
from ..ops.linalg.lu_factors import LuFactor, Permutation
from ..ops.linalg.positive_definite import Cholesky, CholeskyGrad
from ..ops.linalg.triangular import SolveTriangular
from ..ops.nn.ctc import BandedRecurrence, LogBandedRecurrence
from ..ops.places import Counted, refuse_length
from ..ops.powers import Power
from ..ops.products import MatMul
from ..ops.python_function import PyFunction
from ..ops.random.draws import Rejecting
from ..ops.reductions import ReduceAll, ReduceAny
from ..ops.remainders import FloorDivide, Fmod, Remainder
from ..ops.running_extrema import CumMax, CumMin, RunStart
from ..ops.searching import SearchSorted
from ..ops.sequencing import After
from ..ops.special.bessel import BesselI, BesselIScaled
from ..ops.special.error import InverseSlope
from ..ops.special.gammas import PolyGamma
from ..ops.special.scipy_functions import OfScipy
from .backend import Kernel, Kernels, one_call_per_node
from .jax_host import AT, note_call, on_host
from .jax_layout import MeshLayout
from .jax_run import JaxRun
from .jax_running import banded, largest, recurrence, run_start, searched, smallest
from .results import reading


class _JaxKernels(Kernels):
    """Code that is not of this library and may have effects runs in every call, on the host: what
    is traced runs once. So does a Python function, which takes arrays and no tracers."""

    def of(self, op: Op) -> Kernel:
        """The callable of arrays for one op."""
        if type(op) in self._overrides or not is_strange(op):
            return super().of(op)
        traced = op.pure and not isinstance(op, PyFunction)
        return super().of(op) if traced else _on_host(op)

    def of_node(self, node: Node) -> Kernel:
        """The callable for its op, under the node's name and line: so XLA, its errors and its
        profiles call what comes of it."""
        kernel, name = self.of(node.op), f"{node.name} ({node.where})"

        def named(*arrays: Any) -> Any:
            token = AT.set(node)
            try:
                with jax.named_scope(name):
                    return kernel(*arrays)
            finally:
                AT.reset(token)

        return named


KERNELS = _JaxKernels(jnp)
KERNELS.native = frozenset({MatMul})


class JaxBackend:
    """float64 stays float64: 64-bit types are enabled for the call, not for the process.

    mesh       a jax.sharding.Mesh: devices with named axes
    shardings  {input or variable: jax.sharding.PartitionSpec or NamedSharding}: how its axes are
               divided among the devices. What is not named is whole on every device, but for what
               an optimiser remembers of a variable, which lies as the variable does
    donate     whether runs take the memory of the variables that they write. A run that fails may
               then lose their values
    """

    name = "jax"
    kernels = KERNELS

    def __init__(
        self,
        mesh: Any = None,
        shardings: Mapping[Tensor, Any] | None = None,
        donate: bool = False,
    ) -> None:
        if mesh is not None and shardings is None:
            raise DeviceError(
                "mesh= says nothing without shardings=, {input or variable: PartitionSpec}; "
                "shardings={} has every array whole on every device"
            )
        if not isinstance(donate, bool):
            raise TypeError(f"donate is True or False, got {donate!r}")
        self.layout = None if shardings is None else MeshLayout(mesh, shardings)
        self.joining = self.layout is None  # rows of divided arrays would be moved to be joined
        self.donate = donate

    def compile(self, program: Program) -> JaxRun:
        """The program under jax.jit. It is traced at the first call, and once per set of shapes."""
        return self.compile_with_state(program, program.inputs, (), ())

    def compile_with_state(
        self,
        program: Program,
        given: Sequence[Tensor],
        read: Sequence[Node],
        written: Sequence[Node],
    ) -> JaxRun:
        """The same, where the values of variables stay on the device."""
        once = one_call_per_node(program, self.kernels)
        return JaxRun(program, once, given, read, written, self.layout, self.donate)


def _rejecting(op: Any) -> Kernel:
    """Trials of all places until every one is accepted, each with the first that was."""

    def numbers(xp: Any, seed: Any, count: Any, *parameters: Any) -> Any:
        def tried(attempt: Any) -> Any:
            return op.tried(jnp, attempt, seed, count, *parameters)

        def again(state: Any) -> Any:
            attempt, made, accepted = state
            found, good = tried(attempt)
            return attempt + 1, jnp.where(accepted, made, found), accepted | good

        start = (jnp.uint64(1), *tried(0))
        return jax.lax.while_loop(lambda state: ~state[2].all(), again, start)[1]

    return lambda *arrays: op.kernel(jnp, *arrays, numbers=numbers)


for _op_type in OP_TYPES.values():
    if issubclass(_op_type, Rejecting):
        KERNELS.override(_op_type)(_rejecting)


for _op_type in OP_TYPES.values():
    if issubclass(_op_type, Counted):
        KERNELS.override(_op_type)(refuse_length)


def _special(op: Any) -> Kernel:
    """JAX's function of the same SciPy name; attributes come first, as there."""
    fn = getattr(jax.scipy.special, op.scipy)
    return lambda *arrays: fn(*op.attrs.values(), *arrays)


def _scipy_on_host(op: Op) -> Kernel:
    """SciPy's function, called on the host."""

    def run(*arrays: Any) -> Any:
        shape = jnp.broadcast_shapes(*[x.shape for x in arrays])
        made = _struct(shape, arrays[-1].dtype)
        return on_host(jax.pure_callback, partial(op.kernel, np), [made], arrays)[0]

    return run


_AS_SCIPY = {"entr", "erfinv", "gamma", "gammasgn", "log_ndtr", "ndtri", "spence"}
"""Of the other functions JAX has none, or another at infinities, poles and negative numbers: its
polygamma is off by up to a percent, its exp1(inf) and zeta(2, inf) are NaN."""

for _op_type in OP_TYPES.values():
    _name = _op_type.__dict__.get("scipy", "")
    if issubclass(_op_type, OfScipy) and _name not in _AS_SCIPY:
        KERNELS.override(_op_type)(_scipy_on_host)
    elif hasattr(jax.scipy.special, _name):
        KERNELS.override(_op_type)(_special)
KERNELS.override(PolyGamma)(_scipy_on_host)


def _inverse_slope(op: Any) -> Kernel:
    """Of the inverse, which JAX has, but for erfcinv."""
    name = op.inverse.scipy
    if name not in _AS_SCIPY:
        return _scipy_on_host(op)
    inverse = getattr(jax.scipy.special, name)
    return lambda x: op.rough(jnp, inverse(x))


for _op_type in OP_TYPES.values():
    if issubclass(_op_type, InverseSlope):
        KERNELS.override(_op_type)(_inverse_slope)


@KERNELS.override(BesselI)
@KERNELS.override(BesselIScaled)
def _bessel(op: Any) -> Kernel:
    """JAX has those of orders 0 and 1."""
    if op.v not in (0.0, 1.0) or op.attrs.get("order"):
        return _scipy_on_host(op)
    fn: Kernel = getattr(jax.scipy.special, op.whole.format(op.v))
    return fn


def _with_zero_divisors(op: Op) -> Kernel:
    """0 where an integer is divided by 0, as of NumPy."""

    def run(x: Any, y: Any) -> Any:
        if is_floating(y.dtype):
            return op.kernel(jnp, x, y)
        made = op.kernel(jnp, x, jnp.where(y == 0, 1, y))
        return jnp.where(y == 0, 0, made).astype(x.dtype)

    return run


for _op_type in (FloorDivide, Remainder, Fmod):
    KERNELS.override(_op_type)(_with_zero_divisors)


@KERNELS.override(Cast)
def _cast(op: Cast) -> Kernel | None:
    """XLA takes away roundings to bfloat16 between computations in float32, unless told to keep
    them."""
    if not is_bfloat16(op.dtype):
        return None
    return lambda x: jax.lax.reduce_precision(x.astype(FLOAT32), 8, 7).astype(op.dtype)


@KERNELS.override(Power)
def _power(op: Power) -> Kernel:
    """Unsigned integers by squares, modulo their range, as NumPy; the rest is JAX's."""

    def run(x: Any, y: Any) -> Any:
        if kind_of(x.dtype) != "u":
            return op.kernel(jnp, x, y)
        made = jnp.ones_like(y * x)
        for _ in range(8 * x.dtype.itemsize):
            made, x, y = jnp.where(y & 1 == 1, made * x, made), x * x, y >> 1
        return made

    return run


def _by_truth(op: Any) -> Kernel:
    """Of complex numbers JAX looks at the real part alone."""
    return lambda x: op.kernel(jnp, x != 0)


for _op_type in (ReduceAny, ReduceAll):
    KERNELS.override(_op_type)(_by_truth)


@KERNELS.override(Cond)
def _cond(op: Cond) -> Kernel:
    def branch(i: int) -> Kernel:
        body, reads = one_call_per_node(op.programs[i], KERNELS), op.reads[i]
        return lambda *arrays: body(*[arrays[at] for at in reads])

    then, other = branch(0), branch(1)

    def run(pred: Any, *arrays: Any) -> Any:
        found = jax.lax.cond(pred, then, other, *arrays)
        return found[0] if len(found) == 1 else found

    return run


@KERNELS.override(Scan)
def _scan(op: Scan) -> Kernel:
    body = one_call_per_node(op.programs[0], KERNELS)

    def run(*arrays: Any) -> Any:
        carries, stacked, constants = op.parts(arrays)

        def step(carry: Any, rows: Any) -> Any:
            found = body(*carry, *rows, *constants)
            kept = [carry[i] for i in op.history]
            return tuple(found[: op.carries]), (*found[op.carries :], *kept)

        last, rows = jax.lax.scan(step, tuple(carries), tuple(stacked), op.length, op.reverse)
        made = (*last, *rows)
        return made[0] if len(made) == 1 else made

    return run


@KERNELS.override(While)
def _while(op: While) -> Kernel:
    test, body = (one_call_per_node(p, KERNELS) for p in op.programs)
    rows = op.max_trips
    if op.history and rows is None:
        raise NotImplementedError(
            f"the jax backend has to know how much the gradient of the loop at {op.at} keeps: give "
            "while_loop() max_trips= or fori_loop() bounds that are ints, or use the numpy or llvm "
            "backend"
        )

    def run(*arrays: Any) -> Any:
        first, constants = arrays[: op.carries], arrays[op.carries :]

        def going(state: Any) -> Any:
            trips, carries, _ = state
            (holds,) = test(*carries, *constants)
            return holds if rows is None else jnp.logical_and(holds, trips < rows)

        def step(state: Any) -> Any:
            trips, carries, kept = state
            kept = [k.at[trips].set(carries[i]) for i, k in zip(op.history, kept, strict=True)]
            return trips + 1, tuple(body(*carries, *constants)), kept

        kept = [jnp.broadcast_to(first[i], (rows, *first[i].shape)) for i in op.history]
        start = jnp.asarray(0, "int64"), tuple(first), kept
        trips, carries, kept = jax.lax.while_loop(going, step, start)
        if rows is not None:
            (more,) = test(*carries, *constants)
            made = [_struct((), "int64")]
            (trips,) = on_host(jax.pure_callback, op.check_trips, made, (more, trips))
            carries = tuple(jnp.where(trips < 0, 0, x) for x in carries)  # so that it is called
        return (*carries, *kept, trips)

    return run


@KERNELS.override(After)
def _after(op: After) -> Kernel:
    """Behind a barrier: XLA would merge what is computed again with what was computed before."""
    barrier: Any = jax.lax.optimization_barrier  # it has no annotations
    return lambda *arrays: barrier(arrays)[0]


_ALONG_AN_AXIS: dict[type[Op], Any] = {
    BandedRecurrence: banded,
    LogBandedRecurrence: banded,
    CumMax: largest,
    CumMin: smallest,
    Recurrence: recurrence,
    RunStart: run_start,
    SearchSorted: searched,
}
for _op_type, _make in _ALONG_AN_AXIS.items():
    KERNELS.override(_op_type)(_make)


# --- linear algebra ------------------------------------------------------------------------------


@KERNELS.override(Cholesky)
def _cholesky(op: Cholesky) -> Kernel:
    return lambda x: jax.lax.linalg.cholesky(x, symmetrize_input=False)


@KERNELS.override(CholeskyGrad)
def _cholesky_grad(op: CholeskyGrad) -> Kernel:
    """The formula for whole matrices, for which XLA has all there is to call."""

    def run(y: Any, dy: Any) -> Any:
        y, dy = jnp.tril(y), jnp.tril(dy)
        half = _halved(jnp.conj(y.mT) @ dy)
        left = jax.lax.linalg.triangular_solve(
            y, half, left_side=True, lower=True, transpose_a=True, conjugate_a=True
        )
        s = jax.lax.linalg.triangular_solve(y, left, left_side=False, lower=True)
        return _halved(s + jnp.conj(s.mT))

    return run


def _halved(x: Any) -> Any:
    """The lower triangle with half the diagonal."""
    return (jnp.tril(x) + jnp.tril(x, -1)) / 2


@KERNELS.override(SolveTriangular)
def _solve_triangular(op: SolveTriangular) -> Kernel:
    def run(x: Any, y: Any) -> Any:
        stack = jnp.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        x, y = (jnp.broadcast_to(a, (*stack, *a.shape[-2:])) for a in (x, y))
        return jax.lax.linalg.triangular_solve(
            x, y, left_side=True, lower=op.lower, transpose_a=op.transpose, unit_diagonal=op.unit
        )

    return run


@KERNELS.override(LuFactor)
def _lu(op: LuFactor) -> Kernel:
    return lambda x: jax.lax.linalg.lu(x)[:2]


@KERNELS.override(Permutation)
def _permutation(op: Permutation) -> Kernel:
    def run(pivots: Any, x: Any) -> Any:
        found = jax.lax.linalg.lu_pivots_to_permutation(pivots, x.shape[-2])
        return found.astype(jnp.int64)

    return run


@KERNELS.override(MatrixExp)
def _expm(op: MatrixExp) -> Kernel:
    kernel: Kernel = jax.scipy.linalg.expm
    return kernel


@KERNELS.override(MatrixExpDerivative)
def _expm_derivative(op: MatrixExpDerivative) -> Kernel:
    def run(x: Any, dx: Any) -> Any:
        return Quarter(0, 1).kernel(jnp, jax.scipy.linalg.expm(with_corner(jnp, x, dx)))

    return run


@KERNELS.override(Eigh)
def _eigh(op: Eigh) -> Kernel:
    return lambda x: tuple(jnp.linalg.eigh(x, UPLO="L", symmetrize_input=False))


@KERNELS.override(EigenvaluesH)
def _eigvalsh(op: EigenvaluesH) -> Kernel:
    return lambda x: jnp.linalg.eigvalsh(x, UPLO="L", symmetrize_input=False)


def _on_host(op: Op) -> Kernel:
    """Called on the host, in order and never left out: it may have effects."""
    kernel = reading(partial(op.kernel, np))

    def run(*arrays: Any) -> Any:
        note_call()
        types = op.infer(*[tensor_type(x.shape, x.dtype) for x in arrays])
        made = tuple([_promised(op, t) for t in types])
        found = on_host(io_callback, kernel, made, arrays, ordered=True)
        return tuple(found) if len(found) > 1 else found[0]

    return run


def _promised(op: Op, promised: TensorType) -> Any:
    if not promised.static:
        raise NotImplementedError(
            f"the jax backend needs known lengths in the out_types of {op!r}, got {promised!r}; "
            "give them, or use the numpy backend"
        )
    return _struct(promised.shape, promised.dtype)


_struct: Any = jax.ShapeDtypeStruct
