"""JAX: the same kernels, traced by jax.jit."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
from jax.experimental import io_callback

from ..ir.op import OP_TYPES, Op
from ..ir.program import Program
from ..ir.state import RUN, RunNumber
from ..ir.types import Array, TensorType, tensor_type
from ..lower.alias import is_strange
from ..ops.arithmetic import FloorDivide, Fmod, Power, Remainder
from ..ops.control import Cond
from ..ops.random.draws import Rejecting
from ..ops.random.keys import draws_keys
from ..ops.reductions import ReduceAll, ReduceAny
from ..ops.sequencing import After
from ..ops.special import PolyGamma
from .backend import Compiled, Kernel, Kernels, one_call_per_node
from .results import own, reading


class _JaxKernels(Kernels):
    """Code that is not of this library and may have effects runs in every call, on the host: what
    is traced runs once."""

    def of(self, op: Op) -> Kernel:
        """The callable of arrays for one op."""
        known = op.pure or type(op) in self._overrides or not is_strange(op)
        return super().of(op) if known else _on_host(op)


KERNELS = _JaxKernels(jnp)


class JaxBackend:
    """float64 stays float64: 64-bit types are enabled for the call, not for the process."""

    name = "jax"
    kernels = KERNELS

    def compile(self, program: Program) -> Compiled:
        """The program under jax.jit. It is traced at the first call, and once per set of shapes."""
        once, wanted = one_call_per_node(program, self.kernels), program.outputs
        counted = draws_keys(program)

        def traced(*arrays: Any) -> tuple[Any, ...]:
            if not counted:
                return once(*arrays)
            *arrays, number = arrays  # type: ignore[assignment]
            with RunNumber(number):
                return once(*arrays)

        with jax.enable_x64(True):
            jitted = jax.jit(traced)

        def run(*arrays: Array) -> tuple[Array, ...]:
            number = (np.int64(RUN.get()),) if counted else ()
            with jax.enable_x64(True):
                outputs: tuple[Any, ...] = jitted(*arrays, *number)
                return own([np.asarray(y) for y in outputs], arrays, wanted)

        return run


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


def _special(op: Any) -> Kernel:
    """JAX's function of the same SciPy name; attributes come first, as there."""
    fn = getattr(jax.scipy.special, op.scipy)
    return lambda *arrays: fn(*op.attrs.values(), *arrays)


for _op_type in OP_TYPES.values():
    if hasattr(jax.scipy.special, _op_type.__dict__.get("scipy", "")):
        KERNELS.override(_op_type)(_special)


@KERNELS.override(PolyGamma)
def _polygamma(op: PolyGamma) -> Kernel:
    """On the host: that of JAX is off by up to a percent for negative numbers."""

    def run(x: Any) -> Any:
        return jax.pure_callback(lambda a: op.kernel(np, a), _struct(x.shape, x.dtype), x)

    return run


def _with_zero_divisors(op: Op) -> Kernel:
    """0 where an integer is divided by 0, as of NumPy."""

    def run(x: Any, y: Any) -> Any:
        if y.dtype.kind == "f":
            return op.kernel(jnp, x, y)
        made = op.kernel(jnp, x, jnp.where(y == 0, 1, y))
        return jnp.where(y == 0, 0, made).astype(x.dtype)

    return run


for _op_type in (FloorDivide, Remainder, Fmod):
    KERNELS.override(_op_type)(_with_zero_divisors)


@KERNELS.override(Power)
def _power(op: Power) -> Kernel:
    """Unsigned integers by squares, modulo their range, as NumPy; the rest is JAX's."""

    def run(x: Any, y: Any) -> Any:
        if x.dtype.kind != "u":
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


@KERNELS.override(After)
def _after(op: After) -> Kernel:
    """Behind a barrier: XLA would merge what is computed again with what was computed before."""
    barrier: Any = jax.lax.optimization_barrier  # it has no annotations
    return lambda *arrays: barrier(arrays)[0]


def _on_host(op: Op) -> Kernel:
    """Called on the host, in order and never left out: it may have effects."""
    kernel = reading(partial(op.kernel, np))

    def run(*arrays: Any) -> Any:
        types = op.infer(*[tensor_type(x.shape, x.dtype) for x in arrays])
        made = tuple([_promised(op, t) for t in types])
        return io_callback(kernel, made if len(made) > 1 else made[0], *arrays, ordered=True)

    return run


def _promised(op: Op, promised: TensorType) -> Any:
    if not promised.static:
        raise NotImplementedError(
            f"the jax backend needs known lengths in the out_types of {op!r}, got {promised!r}; "
            "give them, or use the numpy backend"
        )
    return _struct(promised.shape, promised.dtype)


_struct: Any = jax.ShapeDtypeStruct
