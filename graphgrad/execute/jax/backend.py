"""JAX: the same kernels, traced by jax.jit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import jax.scipy.special
import numpy as np
from jax.experimental import io_callback

from ...base.collector import having
from ...base.errors import DeviceError, ExecutionError
from ...base.kinds import FLOAT32, is_bfloat16, is_floating, kind_of
from ...ir.node import Node, Tensor
from ...ir.op import OP_TYPES, Op
from ...ir.program import Program
from ...ir.types import TensorType, tensor_type
from ...lower.alias import is_strange
from ...ops.arrays.histograms import BinCount
from ...ops.arrays.searching import SearchSorted
from ...ops.base import Cast
from ...ops.contract.products import MatMul
from ...ops.control import Cond, Scan, While
from ...ops.demands import Demand
from ...ops.elementwise.powers import Power
from ...ops.elementwise.remainders import FloorDivide, Fmod, Remainder
from ...ops.identities.sequencing import After
from ...ops.linalg.eigenvalues import Eig, Eigenvalues, EigenvaluesH, Eigh
from ...ops.linalg.exponentials import MatrixExp, MatrixExpDerivative, Quarter, with_corner
from ...ops.linalg.inverses import Inverse, Solve
from ...ops.linalg.lu_factors import LuFactor, Permutation
from ...ops.linalg.positive_definite import Cholesky, CholeskyGrad
from ...ops.linalg.triangular import SolveTriangular
from ...ops.nn.ctc import BandedRecurrence, LogBandedRecurrence
from ...ops.per_example import PerExample
from ...ops.python_function import PyFunction
from ...ops.random.draws import Rejecting
from ...ops.reduce.cumulative import Recurrence
from ...ops.reduce.reductions import ReduceAll, ReduceAny
from ...ops.reduce.running_extrema import CumMax, CumMin, RunStart
from ...ops.shape.places import Counted, refuse_length
from ...ops.shape.slicing import Slice, UnsliceLike
from ...ops.special.bessel import BesselI, BesselIScaled
from ...ops.special.complex_gammas import ComplexGamma
from ...ops.special.error import InverseSlope
from ...ops.special.gammas import PolyGamma
from ...ops.special.scipy_functions import OfScipy
from ..backend import Backend
from ..kernels import Kernel, Kernels, one_call_per_node
from ..results import reading
from .axis_loops import banded, largest, recurrence, run_start, searched, smallest
from .checks import (
    REFUSING,
    Refusals,
    Status,
    asked,
    check_indices,
    first,
    may_refuse,
    note,
    refuse,
    watched,
)
from .host import AT, note_call, on_host
from .layout import MeshLayout
from .run import JaxRun


class _JaxKernels(Kernels):
    """Code that is not of this library and may have effects runs in every call, on the host: what
    is traced runs once. So does a Python function, which takes arrays and no tracers."""

    def of(self, op: Op) -> Kernel:
        """The callable of arrays for one op."""
        foreign = type(op) not in self._overrides and is_strange(op)
        if foreign and (not op.pure or isinstance(op, PyFunction)):
            return _on_host(op)
        kernel = super().of(op)
        if type(op).index_inputs is Op.index_inputs:
            return kernel

        def within_bounds(*arrays: Any) -> Any:
            _check_lengths(op, arrays)
            if check_indices(op, arrays):
                return kernel(*arrays)
            types = op.infer(*[tensor_type(x.shape, x.dtype) for x in arrays])
            made = tuple([jnp.zeros(t.shape, t.dtype) for t in types])
            return made if len(made) > 1 else made[0]

        return within_bounds

    def of_node(self, node: Node) -> Kernel:
        """The callable for its op, under the node's name and line: so XLA, its errors and its
        profiles call what comes of it."""
        kernel, name = self.of(node.op), f"{node.name} ({node.where})"

        def named(*arrays: Any) -> Any:
            with jax.named_scope(name):
                return having(AT, node, kernel, *arrays)

        return named


KERNELS = _JaxKernels(jnp)
KERNELS.native = frozenset({MatMul})


class JaxBackend(Backend):
    """float64 stays float64: 64-bit types are enabled for the call, not for the process.

    mesh       a jax.sharding.Mesh: devices with named axes
    shardings  {input or variable: jax.sharding.PartitionSpec or NamedSharding}: how its axes are
               divided among the devices. What is not named is whole on every device, but for what
               an optimiser remembers of a variable, which lies as the variable does
    donate     whether runs take the memory of the variables that they write. A run that fails may
               then lose their values
    bounds     "check": what a kernel refuses of its inputs, such as an index out of bounds or a
               singular matrix, is an error of the run; "jax": nothing is checked, and values are
               what JAX makes of it
    """

    name = "jax"
    kernels = KERNELS

    def __init__(
        self,
        mesh: Any = None,
        shardings: Mapping[Tensor, Any] | None = None,
        donate: bool = False,
        bounds: str = "check",
    ) -> None:
        if mesh is not None and shardings is None:
            raise DeviceError(
                "mesh= has no effect without shardings=, {input or variable: PartitionSpec}; "
                "shardings={} keeps every array whole on every device"
            )
        if not isinstance(donate, bool):
            raise TypeError(f"donate is True or False, got {donate!r}")
        if bounds not in ("check", "jax"):
            raise ValueError(f'bounds is "check" or "jax", got {bounds!r}')
        self.layout = None if shardings is None else MeshLayout(mesh, shardings)
        self.joining = self.layout is None  # rows of divided arrays would be moved to be joined
        self.donate = donate
        self.bounds = bounds

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
        once = one_call_per_node(program, self.kernels, lambda sized: run.refine(sized))
        refusals = Refusals() if self.bounds == "check" and may_refuse([program]) else None
        run = JaxRun(program, once, given, read, written, self.layout, self.donate, refusals)
        return run


def _rejecting(op: Any) -> Kernel:
    """Trials of all places until every one is accepted, each with the first that was."""

    def numbers(xp: Any, seed: Any, count: Any, *parameters: Any) -> Any:
        def tried(attempt: Any) -> Any:
            return op.tried(jnp, attempt, seed, count, *parameters)

        def again(state: Any) -> Any:
            attempt, made, accepted = state
            drawn, good = tried(attempt)
            return attempt + 1, jnp.where(accepted, made, drawn), accepted | good

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
KERNELS.override(ComplexGamma)(_scipy_on_host)  # JAX's loses digits beside poles


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
        if kind_of(y.dtype) == "i" and y.size:
            refuse(_no_integer, lambda: (y.min() < 0, 0), (x, y))
        if kind_of(x.dtype) != "u":
            return op.kernel(jnp, x, y)
        made = jnp.ones_like(y * x)
        for _ in range(8 * x.dtype.itemsize):
            made, x, y = jnp.where(y & 1 == 1, made * x, made), x * x, y >> 1
        return made

    return run


def _no_integer(_: int) -> Exception:
    return ValueError("Integers to negative integer powers are not allowed.")


@KERNELS.override(BinCount)
def _bincount(op: BinCount) -> Kernel:
    """Negative numbers are an error where they are checked, and do not count elsewhere."""

    def run(x: Any, *weights: Any) -> Any:
        if x.size:
            refuse(_not_counted, lambda: ((least := x.min()) < 0, least), (x, *weights))
        return op.kernel(jnp, x, *weights)

    return run


def _not_counted(least: int) -> Exception:
    return IndexError(f"bincount counts integers >= 0, got {least}")


def _by_truth(op: Any) -> Kernel:
    """Of complex numbers JAX looks at the real part alone."""
    return lambda x: op.kernel(jnp, x != 0)


for _op_type in (ReduceAny, ReduceAll):
    KERNELS.override(_op_type)(_by_truth)


@KERNELS.override(Slice)
@KERNELS.override(UnsliceLike)
def _slice(op: Op) -> Kernel:
    """JAX takes the nearest place for a number that is out of bounds."""

    def run(*arrays: Any) -> Any:
        _check_lengths(op, arrays)
        return op.kernel(jnp, *arrays)

    return run


def _check_lengths(op: Op, arrays: Sequence[Any]) -> None:
    """ShapeError where lengths do not fit that became known with the arrays."""
    if all(type(d) is int for x in arrays for d in x.shape):
        op.infer(*[tensor_type(x.shape, x.dtype) for x in arrays])


@KERNELS.override(Cond)
def _cond(op: Cond) -> Kernel:
    def branch(i: int) -> Kernel:
        body, reads = one_call_per_node(op.programs[i], KERNELS), op.reads[i]
        return lambda *arrays: body(*[arrays[at] for at in reads])

    def run(pred: Any, *arrays: Any) -> Any:
        before = asked(op.programs)
        then, other = (watched(branch(i), before) for i in (0, 1))
        outputs, status = jax.lax.cond(pred, then, other, *arrays)
        note(status)
        return outputs[0] if len(outputs) == 1 else outputs

    return run


@KERNELS.override(Scan)
def _scan(op: Scan) -> Kernel:
    body = one_call_per_node(op.programs[0], KERNELS)

    def run(*arrays: Any) -> Any:
        carries, stacked, constants = op.parts(arrays)
        before = asked(op.programs)
        once = watched(body, before)

        def step(state: Any, rows: Any) -> Any:
            carry, status = state
            outputs, now = once(*carry, *rows, *constants)
            kept = [carry[i] for i in op.history]
            made = tuple(outputs[: op.carries]), first(status, now)
            return made, (*outputs[op.carries :], *kept)

        start = tuple(carries), before
        (last, status), rows = jax.lax.scan(step, start, tuple(stacked), op.length, op.reverse)
        note(status)
        made = (*last, *rows)
        return made[0] if len(made) == 1 else made

    return run


@KERNELS.override(While)
def _while(op: While) -> Kernel:
    """A loop that refused something ends. What the test refuses is asked beside it: a test of
    JAX's gives a boolean alone."""
    test, body = (one_call_per_node(p, KERNELS) for p in op.programs)
    rows = op.max_trips
    if op.history and rows is None:
        raise ExecutionError(
            f"the jax backend needs a bound on how much the gradient of the loop at {op.at} "
            "stores: give while_loop() max_trips= or fori_loop() bounds that are ints, or use "
            "the numpy or llvm backend"
        )

    def run(*arrays: Any) -> Any:
        taken, constants = arrays[: op.carries], arrays[op.carries :]
        before, of_test = asked(op.programs), asked(op.programs[:1])

        def going(state: Any) -> Any:
            trips, carries, _, status = state
            (holds,), _ = watched(test, before)(*carries, *constants)
            holds = holds if rows is None else jnp.logical_and(holds, trips < rows)
            return holds if status is None else jnp.logical_and(holds, status.code == 0)

        def tested(status: Status | None, carries: Any) -> Status | None:
            if of_test is None:
                return status
            return first(status, watched(test, before)(*carries, *constants)[1])

        def step(state: Any) -> Any:
            trips, carries, kept, status = state
            status = tested(status, carries)
            kept = [k.at[trips].set(carries[i]) for i, k in zip(op.history, kept, strict=True)]
            made, now = watched(body, before)(*carries, *constants)
            return trips + 1, tuple(made), kept, first(status, now)

        kept = [jnp.broadcast_to(taken[i], (rows, *taken[i].shape)) for i in op.history]
        start = jnp.asarray(0, "int64"), tuple(taken), kept, before
        trips, carries, kept, status = jax.lax.while_loop(going, step, start)
        note(tested(status, carries))
        if rows is not None:
            (more,) = test(*carries, *constants)
            carries, trips = _within_trips(op, more, carries, trips, arrays)
        return (*carries, *kept, trips)

    return run


def _within_trips(op: While, more: Any, carries: Any, trips: Any, arrays: Any) -> tuple[Any, Any]:
    """What the last run left, where it was the last that may be; else an error of the run."""
    if not refuse(op.too_many, lambda: (more, trips), arrays):
        made = [_struct((), "int64")]
        (trips,) = on_host(jax.pure_callback, op.check_trips, made, (more, trips))
        carries = tuple(jnp.where(trips < 0, 0, x) for x in carries)  # so that it is called
    return carries, trips


@KERNELS.override(PerExample)
def _per_example(op: PerExample) -> Kernel:
    one = KERNELS.of(op.op)
    return lambda *arrays: op.each(jnp, one, arrays)


@KERNELS.override(Demand)
def _demand(op: Demand) -> Kernel:
    """Where nobody asks for errors, NaN in place of numbers that may not be."""

    def run(x: Any, holds: Any) -> Any:
        exact = not jnp.issubdtype(x.dtype, jnp.floating)

        def error(bits: int) -> Exception:
            if holds.shape != x.shape or not x.size:
                return ValueError(op.said)
            return ValueError(f"{op.said}, got {bits if exact else np.int64(bits).view('float64')}")

        def find() -> tuple[Any, Any]:
            if holds.shape != x.shape or not x.size:
                return ~holds.all(), 0
            wrong = x.reshape(-1)[jnp.argmin(holds)]
            wide = wrong.astype("int64" if exact else "float64")
            return ~holds.all(), wide if exact else jax.lax.bitcast_convert_type(wide, jnp.int64)

        if refuse(error, find, (x, holds)) or not jnp.issubdtype(x.dtype, jnp.inexact):
            return x
        return jnp.where(holds.all(), x, jnp.nan).astype(x.dtype)

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


def _linalg_error(words: str) -> Callable[[int], Exception]:
    return lambda _: np.linalg.LinAlgError(words)


_SINGULAR = _linalg_error("Singular matrix")
_INDEFINITE = _linalg_error("Matrix is not positive definite")
_NOT_FINITE = _linalg_error("Array must not contain infs or NaNs")


def _diagonal(x: Any) -> Any:
    return jnp.diagonal(x, axis1=-2, axis2=-1)


@KERNELS.override(Inverse)
@KERNELS.override(Solve)
def _inverse(op: Op) -> Kernel:
    """Of a singular matrix the factors that JAX solves with have a 0 on the diagonal."""

    def run(x: Any, *y: Any) -> Any:
        def find() -> Any:
            of = x.mT if isinstance(op, Solve) and op.transpose else x
            return (_diagonal(jax.lax.linalg.lu(of)[0]) == 0).any(), 0

        refuse(_SINGULAR, find, (x, *y))
        return op.kernel(jnp, x, *y)

    return run


@KERNELS.override(Eig)
@KERNELS.override(Eigenvalues)
def _eig(op: Op) -> Kernel:
    def run(x: Any) -> Any:
        refuse(_NOT_FINITE, lambda: (~jnp.isfinite(x).all(), 0), (x,))
        return op.kernel(jnp, x)

    return run


@KERNELS.override(Cholesky)
def _cholesky(op: Cholesky) -> Kernel:
    def run(x: Any) -> Any:
        y = jax.lax.linalg.cholesky(x, symmetrize_input=False)
        refuse(_INDEFINITE, lambda: (jnp.isnan(_diagonal(y)).any(), 0), (x,))
        return y

    return run


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
        if not op.unit:
            refuse(_SINGULAR, lambda: ((_diagonal(x) == 0).any(), 0), (x, y))
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
        permutation = jax.lax.linalg.lu_pivots_to_permutation(pivots, x.shape[-2])
        return permutation.astype(jnp.int64)

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
        outputs = on_host(io_callback, kernel, made, arrays, ordered=True)
        return tuple(outputs) if len(outputs) > 1 else outputs[0]

    return run


def _promised(op: Op, promised: TensorType) -> Any:
    if not promised.static:
        raise ExecutionError(
            f"the jax backend needs known lengths in the out_types of {op!r}, got {promised!r}; "
            "give them, or use the numpy backend"
        )
    return _struct(promised.shape, promised.dtype)


REFUSING.update(
    (BinCount, Cholesky, Demand, Eig, Eigenvalues, Inverse, Power, Solve, SolveTriangular, While)
)

_struct: Any = jax.ShapeDtypeStruct
