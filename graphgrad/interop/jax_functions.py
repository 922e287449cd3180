"""Compiled functions as pure functions of JAX arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ..base.errors import MissingBackendError, StateError
from ..base.tree import flatten, unflatten
from ..compiled import CompiledFunction, packer
from ..execute.run.feeds import MANY, Feeds
from ..functions import Function
from ..ir.types import tensor_type
from ..lower.specialise import specialise
from .orders import first_order
from .states import RUNS, commit, is_single, misfits, state_names, state_tree

__all__ = ["to_jax", "without_state"]

NEEDED = ("jax", "jaxlib", "flatbuffers")
"""What the extra "jax" installs."""


def calls(who: str, module: str = ".jax_calls") -> Any:
    """A module of what needs JAX; MissingBackendError without it."""
    try:
        return import_module(module, __package__)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in NEEDED:
            raise
        raise MissingBackendError(
            f"{who} needs the package {error.name!r}: pip install 'graphgrad[jax]'"
        ) from error


def as_jax(f: CompiledFunction, gradients: int = 1, *, dtype: Any = None) -> Callable[..., Any]:
    """A pure function of JAX arrays that computes what this function computes, whatever its
    backend: `fn(inputs, state) -> (outputs, state)`.

    It goes through `jax.jit` (donate the state with `donate_argnums=1`), `vmap`, `shard_map`
    (in `jit`), `export`, and reverse mode: `jax.grad` of it is what `gradients` gives, with the
    rules of all overrides, with respect to inputs and to variables. What is marked, and
    registered under a name, when JAX asks for a derivative first counts in it. Forward mode
    (`jax.jvp`, `jacfwd`, `hessian`) is an error of JAX; `jacrev(grad(...))` is not. Nothing
    is written: `f.commit(state)` does that.

    Parameters:
        f: that of `f.as_jax`.
        gradients: how many times it may be differentiated. Once more is an error.
        dtype: None: JAX has to have 64-bit types on (`jax_enable_x64`) where anything is of 64
            bits. "float32": what is float64 is computed in float32, and complex128 in complex64, on
            purpose; integers of 64 bits are what JAX makes of them.

    Returns: fn. Its inputs are a list or tuple of arrays in order, a dict by name, or, of one
    input, the array. Its state is what `f.state_tree()` gives, and may be left out where that is
    empty. The outputs are in the structure of f's.

    Raises: MissingBackendError without JAX; ValueError for an unsupported dtype, or a number of
    gradients below 0; GraphError for py_functions, which may have effects. Called, fn raises
    DTypeError, ShapeError and StateError for what does not fit, DTypeError for 64 bits where JAX
    has them off, and, differentiated more than `gradients` times, GradientError.

    >>> import jax
    >>> x, w = gg.placeholder((2,), "float32"), gg.variable(np.float32(0.6), name="w")
    >>> with gg.override_gradient(lambda site, dy: dy):
    ...     y = gg.round(w)
    >>> f = gg.compile(x, gg.sum(x * y))
    >>> fn = f.as_jax()
    >>> loss = lambda x, state: fn([x], state)[0]
    >>> jax.grad(loss, argnums=1)(np.ones(2, "float32"), f.state_tree())
    {'w': Array(2., dtype=float32)}
    """
    counted, single = number_of_gradients(gradients), is_single(dtype)
    order = calls("as_jax()").JaxOrder(first_order(f, counted, "as_jax"), single)
    return _pure(f, order, single)


def number_of_gradients(gradients: Any) -> int:
    """It as an int; ValueError for what is none."""
    if isinstance(gradients, bool) or not isinstance(gradients, int) or gradients < 0:
        raise ValueError(
            "gradients= is the number of times that the function may be differentiated, got "
            f"{gradients!r}"
        )
    return gradients


def _pure(f: CompiledFunction, order: Any, single: bool) -> Callable[..., Any]:
    """fn of inputs and state, around an order of flat arrays."""
    jax_calls = calls("as_jax()")
    given, run_number = jax_calls.given, jax_calls.run_number
    count, packed, names = f._request.arity, packer(f.outputs), state_names(f)
    check_together = _together(f)
    read = [v.outputs[0] for v in f._access.read]
    variables = [v.outputs[0] for v in f._access.variables]

    def fn(inputs: Any = (), state: Mapping[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """fn(inputs, state) -> (outputs, state)."""
        arrays = given(f.inputs, placed(f._request.feeds, inputs), single)
        check_together(arrays)
        state = _whole(f, names, {} if state is None else state)
        values = given(variables, [state[t.node.name] for t in variables], single)
        new = dict(zip([t.node.name for t in variables], values, strict=True))
        number = [run_number(state[RUNS])] if f._access.counted else []
        made = order.fn(*arrays, *[new[t.node.name] for t in read], *number)
        new.update(zip([v.name for v in f._access.written], made[count:], strict=True))
        if f._access.counted:
            new[RUNS] = state[RUNS] + 1
        return packed(made), new

    return fn


def placed(feeds: Feeds, inputs: Any) -> tuple[Any, ...]:
    """Inputs in order: of a sequence, a dict by name, or the only one."""
    if isinstance(inputs, Mapping):
        return feeds.placed((), inputs)
    if isinstance(inputs, list | tuple):
        return feeds.placed(tuple(inputs), {})
    return feeds.placed((inputs,), {})


def _together(f: CompiledFunction) -> Callable[[Sequence[Any]], None]:
    """What raises where arrays do not fit the program together, as on every backend."""
    feeds, program = f._request.feeds, f.program
    read = [v.outputs[0].type for v in f._access.read]
    fitted: set[Any] = {tuple([t.shape for t in f.inputs])}

    def check(arrays: Sequence[Any]) -> None:
        shapes = tuple([x.shape for x in arrays])
        if shapes in fitted or not all(type(n) is int for shape in shapes for n in shape):
            return
        feeds.check_lengths(shapes)
        types = [tensor_type(s, t.dtype) for s, t in zip(shapes, f.inputs, strict=True)]
        feeds.check_together(types)
        specialise(program, [*types, *read])
        if len(fitted) < MANY:
            fitted.add(shapes)

    return check


def _whole(f: CompiledFunction, names: list[str], state: Any) -> Mapping[str, Any]:
    wrong = misfits(names, state)
    if wrong:
        rows = "\n  ".join(wrong)
        raise StateError(
            f"the state of {f!r} must have the structure of its state_tree().\n  {rows}"
        )
    return state  # type: ignore[no-any-return]


def to_jax(
    f: CompiledFunction | Function, gradients: int = 1, *, dtype: Any = None
) -> Callable[..., Any]:
    """A function of JAX arrays, called as f is, for a function without state.

    What `as_jax` says holds of it: it goes through JAX's transformations but forward mode, and its
    derivatives are those of `gradients`, with the rules of all overrides. It is what a layer or a
    loss written for JAX calls.

    Parameters:
        f: what gg.compile or gg.function returned. Of a gg.function, a graph is built when JAX
            traces it with arrays of new shapes and dtypes.
        gradients: how many times it may be differentiated. Once more is an error.
        dtype: as for `as_jax`.

    Returns: a function that takes what f takes, by position or by name, and returns arrays in the
    structure of f's outputs.

    Raises: StateError for a function that reads or writes variables, or draws random numbers
    without a seed; TypeError for input that is not a function of graphgrad; what `as_jax` raises.

    >>> import jax
    >>> x = gg.placeholder((2,), name="x")
    >>> with gg.override_gradient(lambda site, dy: dy):
    ...     y = gg.round(x)
    >>> f = gg.interop.to_jax(gg.compile(x, gg.sum(y * y)), dtype="float32")
    >>> jax.grad(f)(np.array([1.25, 2.75], "float32"))
    Array([2., 6.], dtype=float32)
    """
    counted, single = number_of_gradients(gradients), is_single(dtype)
    if isinstance(f, Function):
        return _of_function(f, counted, dtype)
    if not isinstance(f, CompiledFunction):
        raise TypeError(f"to_jax() takes what gg.compile or gg.function returns, got {f!r}")
    return without_state(f, counted, single, "to_jax")


def without_state(
    f: CompiledFunction, gradients: int, single: bool, how: str
) -> Callable[..., Any]:
    """What `to_jax` returns of a compiled function; how: what users call for it."""
    if state_names(f):
        raise StateError(
            f"{f!r} has state: {', '.join(state_names(f))}. Use f.as_jax(), which takes and "
            "returns the state, or make these inputs"
        )
    jax_calls = calls(f"{how}()")
    order = jax_calls.JaxOrder(first_order(f, gradients, how), single)
    packed, check_together = packer(f.outputs), _together(f)

    def fn(*args: Any, **kwargs: Any) -> Any:
        """The outputs, for arrays in order or by name."""
        arrays = jax_calls.given(f.inputs, f._request.feeds.placed(args, kwargs), single)
        check_together(arrays)
        return packed(order.fn(*arrays))

    return fn


def _of_function(f: Function, gradients: int, dtype: Any) -> Callable[..., Any]:
    """A function of trees of arrays, built for each signature."""
    made: dict[CompiledFunction, Callable[..., Any]] = {}

    def fn(*args: Any) -> Any:
        """The outputs, for arrays in the structure that the function takes."""
        leaves = flatten(args)
        compiled = f.build(*unflatten(args, [_stand_in(x) for x in leaves]))
        if compiled not in made:
            made[compiled] = to_jax(compiled, gradients, dtype=dtype)
        return made[compiled](*leaves)

    return fn


def _stand_in(x: Any) -> Any:
    """What has the shape and dtype of an array, and takes no memory."""
    if not hasattr(x, "dtype"):
        return x
    return np.broadcast_to(np.empty((), x.dtype), x.shape)


CompiledFunction.as_jax = as_jax  # type: ignore[method-assign, assignment]
CompiledFunction.state_tree = state_tree  # type: ignore[method-assign, assignment]
CompiledFunction.commit = commit  # type: ignore[method-assign, assignment]
