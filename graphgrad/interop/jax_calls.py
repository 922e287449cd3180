"""Orders under JAX: traced with the kernels of the backend, and differentiated by `custom_vjp`.

JAX is never let to differentiate a program by itself: it would take the derivative of what the
nodes compute, and every override would be lost without a word. The derivative of an order is the
next order. The forward rule calls the very function that has the rule, so that the second
derivative, which goes through the forward rule, finds it again.

Symbolic zeros say which inputs are differentiated and which outputs a gradient comes from. So what
nobody asks for is not computed, and a rule is not called for a gradient that is zero by structure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any
from warnings import catch_warnings, filterwarnings

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.sharding import NamedSharding, PartitionSpec

from ..base.collector import having
from ..base.errors import (
    DeviceError,
    DTypeError,
    ExecutionError,
    GraphError,
    ShapeError,
    StateError,
)
from ..base.kinds import can_cast, kind_of
from ..base.length import Length
from ..base.locks import OwnLock
from ..base.solving import Axis, solved
from ..execute.jax.backend import KERNELS
from ..execute.jax.checks import unwatched
from ..execute.kernels import one_call_per_node
from ..execute.run.feeds import as_array
from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.program import Program
from ..ir.state import RUN
from ..ir.types import check_unmasked, compatible
from ..lower.alias import is_strange
from ..lower.narrow import narrow, narrow_dtype
from .orders import Order

__all__ = ["JaxOrder", "given", "has_64_bits"]

Flat = Callable[..., tuple[Any, ...]]
_spec: Any = PartitionSpec  # these have no annotations
_lax: Any = jax.lax
_sharding: Any = jax.sharding
Explicit: Any = getattr(getattr(_sharding, "AxisType", None), "Explicit", None)
_64_BITS = frozenset(map(np.dtype, ("float64", "int64", "uint64", "complex128")))


class JaxOrder:
    """An order as a function of JAX arrays, with its derivatives.

    single  whether it computes in single precision what is of double precision
    fn      the function, flat: jit-able, and differentiable as often as there are to be orders
    """

    def __init__(self, order: Order, single: bool) -> None:
        self.order = order
        self.single = single
        self.fn = self._with_derivatives()
        self._lock = OwnLock()
        self._next: dict[Any, tuple[JaxOrder | None, list[int]]] = {}
        check_pure(order.program)

    @cached_property
    def program(self) -> Program:
        """What is traced."""
        return narrow(self.order.program) if self.single else self.order.program

    @cached_property
    def _jitted(self) -> Flat:
        once, counted, outputs = self._once, self.order.counted, self.program.outputs

        def traced(*arrays: Any) -> tuple[Any, ...]:
            *values, number = arrays if counted else (*arrays, 0)
            with _truncating():
                made = having(RUN, number, once, *values)
            for t, y in zip(outputs, made, strict=True):
                _check_promise(t, y)
            return made

        jitted: Flat = jax.jit(traced)
        return jitted

    @cached_property
    def _once(self) -> Flat:
        return unwatched(one_call_per_node(self.program, KERNELS))

    @cached_property
    def _wide(self) -> list[str]:
        """What of it takes 64 bits, in words; of the random numbers alone, if it may narrow."""
        program, how = self.program, "draws random numbers, which are made of words of 64 bits"
        drawn = [f"{_said(n)}: {how}" for n in program.nodes if _draws(n.op)]
        if self.single:
            return drawn
        givens = [t for t in program.inputs if t.dtype in _64_BITS]
        made = [t for n in program.nodes for t in n.outputs if t.dtype in _64_BITS]
        return [f"{_said(t.node)}: {t.type!r}" for t in (*givens, *made)] + drawn

    def _run(self, *arrays: Any) -> tuple[Any, ...]:
        if not has_64_bits():
            if self._wide:
                raise DTypeError(_no_64_bits(self._wide, self.single))
            _check_integers(self.program)
        mesh = _explicit_mesh(arrays)
        if mesh is None:
            return self._jitted(*arrays)
        return self._on_explicit(mesh, arrays)

    def _on_explicit(self, mesh: Any, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """The same on a mesh of explicit axes, where every operation says how its result is
        divided. Within, the axes are automatic. An output is divided along each axis whose named
        length an input has on a divided axis; a variable's next value as the variable."""
        auto_axes = getattr(jax.sharding, "auto_axes", None)
        if auto_axes is None:
            raise DeviceError(
                "this version of JAX has no jax.sharding.auto_axes: make the mesh with "
                "axis_types=(jax.sharding.AxisType.Auto, ...), as for any function of graphgrad"
            )
        divided: dict[Any, Any] = {}
        for t, x in zip(self.program.inputs, arrays, strict=False):
            for length, part in zip(t.shape, jax.typeof(x).sharding.spec, strict=True):
                if isinstance(length, Length) and part is not None:
                    divided.setdefault(length, part)
        specs = [_distinct(divided.get(length) for length in t.shape) for t in self.program.outputs]
        out = tuple([NamedSharding(mesh, _spec(*spec)) for spec in specs])
        made: tuple[Any, ...] = auto_axes(self._jitted, out_sharding=out)(*arrays)
        return made

    def _with_derivatives(self) -> Flat:
        fn: Any = jax.custom_vjp(self._run)

        def forward(*arrays: Any) -> Any:
            values = tuple([a.value for a in arrays])
            moved = {i: None for i, a in enumerate(arrays) if a.perturbed}
            return fn(*values), (values, moved)  # fn, not what it wraps: it is differentiated too

        fn.defvjp(forward, self._backward, symbolic_zeros=True)
        return fn  # type: ignore[no-any-return]

    def _backward(self, kept: Any, dys: Sequence[Any]) -> tuple[Any, ...]:
        arrays, moved = kept
        order, count = self.order, len(self.order.inputs)
        of = [i for i, t in enumerate(order.outputs) if t.type.differentiable]
        of = [i for i in of if not isinstance(dys[i], SymbolicZero)]
        by = [i for i in moved if i < count and order.inputs[i].type.differentiable]
        derivative, reached = self.derivative(of, by)
        dxs: list[Any] = [None] * len(arrays)
        if derivative is not None:
            values, number = arrays[:count], arrays[count:]
            cotangents = derivative.fn(*values, *[dys[i] for i in of], *number)
            for i, dx in zip(reached, cotangents, strict=True):
                dxs[i] = _like_primal(dx, arrays[i])
        return tuple(dxs)

    def derivative(self, of: list[int], by: list[int]) -> tuple[JaxOrder | None, list[int]]:
        """As of an Order; made once for each question."""
        key = tuple(of), tuple(by)
        with self._lock.lock:
            if key not in self._next:
                order, reached = self.order.derivative(of, by)
                made = None if order is None else JaxOrder(order, self.single)
                self._next[key] = made, reached
            return self._next[key]


def _explicit_mesh(arrays: Sequence[Any]) -> Any:
    """The mesh along whose axes the types of arrays say how they are divided; None without."""
    for x in arrays:
        sharding = getattr(jax.typeof(x), "sharding", None)
        if sharding is not None and Explicit in sharding.mesh.axis_types:
            return sharding.mesh
    return None


def _distinct(parts: Iterable[Any]) -> list[Any]:
    """The parts of a spec, each at its first axis: an array is divided along a mesh axis once."""
    seen: set[Any] = set()
    spec = []
    for part in parts:
        names = {part} if isinstance(part, str) else set(part or ())
        spec.append(None if names & seen else part)
        seen |= names
    return spec


def _like_primal(dx: Any, x: Any) -> Any:
    """A cotangent with the layout of its primal, in the type that `custom_vjp` demands.

    Under `shard_map` the primal may be the same on all devices of an axis along which the cotangent
    varies. Then its cotangent is the sum over them, as JAX's own transposition has it.
    """
    primal, cotangent = jax.typeof(x), jax.typeof(dx)
    varying, wanted = _varying(cotangent), _varying(primal)
    if varying - wanted:
        dx = _lax.psum(dx, tuple(sorted(varying - wanted)))
    if wanted - varying:
        dx = _vary(dx, tuple(sorted(wanted - varying)))
    if _explicit_mesh([x]) is not None and jax.typeof(dx).sharding != primal.sharding:
        dx = _sharding.reshard(dx, primal.sharding)
    return dx


def _vary(x: Any, axes: tuple[str, ...]) -> Any:
    """x, as a value that may differ along axes of a mesh."""
    if hasattr(_lax, "pcast"):  # since JAX 0.9
        return _lax.pcast(x, axes, to="varying")
    return _lax.pvary(x, axes)


def _varying(aval: Any) -> frozenset[str]:
    """The axes of a mesh along which a value differs, under `shard_map`."""
    manual = getattr(aval, "manual_axis_type", None)  # before JAX 0.10 they stand in `vma`
    names: frozenset[str] = getattr(aval, "vma", frozenset()) if manual is None else manual.varying
    return names


def has_64_bits() -> bool:
    """Whether JAX has 64-bit types here."""
    return bool(jax.dtypes.canonicalize_dtype(np.float64) == np.float64)


def _no_64_bits(rows: Sequence[str], single: bool) -> str:
    shown = "".join(f"\n  {row}" for row in rows[:8])
    more = f"\n  and {len(rows) - 8} more" if len(rows) > 8 else ""
    narrower = (
        "" if single else (', or say as_jax(dtype="float32") to compute in 32 bits on purpose')
    )
    return (
        f"JAX has 64-bit types off, and would compute in 32 bits what takes 64:{shown}{more}\n"
        'Turn them on, jax.config.update("jax_enable_x64", True), before arrays are made'
        f"{narrower}."
    )


@contextmanager
def _truncating() -> Iterator[None]:
    """Without JAX's warnings that integers are of 32 bits: that is asked for, where it is so."""
    with catch_warnings():
        filterwarnings("ignore", "Explicitly requested dtype .* is not available", UserWarning)
        yield


def _check_integers(program: Program) -> None:
    """DTypeError for constants that integers of 32 bits do not hold."""
    for node in program.nodes:
        value = getattr(node.op, "value", None)
        for t in node.outputs if isinstance(value, int | np.ndarray) else ():
            if t.dtype in _64_BITS and kind_of(t.dtype) in "iu":
                limits, known = np.iinfo(f"{t.dtype.name[:-2]}32"), np.asarray(value)
                if known.size and not limits.min <= known.min() <= known.max() <= limits.max:
                    raise DTypeError(
                        f"{_said(node)} has integers that 32 bits do not hold, and JAX has 64-bit "
                        'types off: jax.config.update("jax_enable_x64", True)'
                    )


def _said(node: Node) -> str:
    return f"{node.name} (built at {node.where})"


def _draws(op: Op) -> bool:
    return any(".random." in type(each).__module__ for each in _ops_of(op))


def _ops_of(op: Op) -> list[Op]:
    """An op, those that it runs, and those in its bodies."""
    ops = [op]
    for each in ops:
        ops += each.runs
        ops += [n.op for p in each.bodies for n in p.nodes]
    return ops


def check_pure(program: Program) -> None:
    """GraphError for nodes that call code which may have effects: JAX takes functions as pure."""
    rows = [
        f"\n  {_said(node)}: {each!r}"
        for node in program.nodes
        for each in _ops_of(node.op)
        if not each.pure and not each.bodies and is_strange(each)
    ]
    if rows:
        raise GraphError(
            "JAX assumes that functions are pure, and may run them twice or not at all. These "
            f"may have effects:{''.join(rows)}\n"
            "Write them in jax.numpy, as an op by gg.interop.from_jax(fn, ...), or compute them "
            "outside and feed the results."
        )


def _check_promise(t: Tensor, y: Any) -> None:
    """ExecutionError where a result is not of the promised dtype."""
    wanted = jax.dtypes.canonicalize_dtype(t.dtype) if not has_64_bits() else t.dtype
    if y.dtype != wanted:
        raise ExecutionError(f"{_said(t.node)} promised {t.type!r}, its kernel returned {y.dtype}")


# --- what is given ------------------------------------------------------------------------------


def given(tensors: Sequence[Tensor], values: Sequence[Any], single: bool) -> list[Any]:
    """Values as JAX arrays of the dtypes and shapes of tensors; ShapeError, DTypeError."""
    lengths: list[Axis] = []
    arrays = []
    for t, value in zip(tensors, values, strict=True):
        array = _as_dtype(t, value, single)
        _check_shape(t, array.shape, lengths)
        arrays.append(array)
    return arrays


def run_number(value: Any) -> Any:
    """The number of the run, as what draws without a seed reads it; StateError."""
    number = jnp.asarray(value)
    if number.shape != () or number.dtype.kind not in "iu":
        raise StateError(
            f"the number of the run is a scalar integer, got {number.dtype}{list(number.shape)}"
        )
    return number.astype(np.int64) if has_64_bits() else number


def _as_dtype(t: Tensor, value: Any, single: bool) -> Any:
    """A value of the dtype of an input, cast as feeds are; DTypeError."""
    wanted = narrow_dtype(t.dtype) if single else t.dtype
    if wanted in _64_BITS and not has_64_bits():
        if not single:
            raise DTypeError(_no_64_bits([f"{_said(t.node)}: {t.type!r}"], single))
        wanted = jax.dtypes.canonicalize_dtype(wanted)
    check_unmasked(value, f"{t.node.name!r} ({t.type!r}): ")
    if type(value) in (bool, int, float, complex):
        value = as_array(t, value)
    if not isinstance(value, jax.Array):
        value = np.asarray(value)
    if value.dtype == wanted:
        return jnp.asarray(value)
    if jnp.issubdtype(value.dtype, jax.dtypes.extended) or not _castable(t, value, wanted):
        raise DTypeError(
            f"{t.node.name!r} ({t.type!r}, built at {t.where}) cannot take {value.dtype}: cast it "
            f"with .astype({wanted.name!r}) if losing information is intended"
        )
    return jnp.asarray(value).astype(wanted)


def _castable(t: Tensor, value: Any, wanted: Any) -> bool:
    """Whether a value may become of a dtype: integers if they fit, which is seen of known ones."""
    if kind_of(value.dtype) not in "iu" or kind_of(wanted) not in "iu":
        return can_cast(value.dtype, wanted, "same_kind")
    if can_cast(value.dtype, wanted):
        return True
    if isinstance(value, jax.core.Tracer):
        return False
    known = np.asarray(value)
    return np.array_equal(known.astype(wanted), known)


def _check_shape(t: Tensor, shape: tuple[Any, ...], lengths: list[Axis]) -> None:
    if not compatible(t.type.shape, shape):
        raise ShapeError(
            f"{t.node.name!r} ({t.type!r}, built at {t.where}) got an array of shape {shape}"
        )
    lengths += [
        (d, n, f"in {t.node.name!r} ({t.type!r})") for d, n in zip(t.type.shape, shape, strict=True)
    ]
    solved(lengths)
