"""Functions of JAX, opened: what `gg.interop.open_jax` takes and returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.lazy import lazy_module
from ..ops.foreign.jax_function import need_jax

__all__ = ["open_jax"]

_opening: Any = lazy_module("graphgrad.interop.jax_primitives.opening")
PARAMETERS = ("variables", "constants")


def open_jax(fn: Callable[..., Any], *args: Any, parameters: str = "variables") -> Any:
    """Open a JAX function: build it in the current graph, with a node for each operation.

    Unlike the single op of `from_jax`, these nodes can be marked, overridden, drawn,
    differentiated, saved and exported like any others. The function is traced once, like in
    `jax.jit`. Its rules are kept: functions with `jax.custom_vjp`, `jax.custom_jvp` and
    `jax.lax.custom_linear_solve` become regions with the function's name and JAX's derivative, at
    every order; `overrides=` switches them off or replaces them. The functions of jax.nn (relu,
    gelu, softmax, ...) become those of `gg.nn`. JAX's name scopes become name scopes, and each node
    has its line in the traced program.

    64-bit types are enabled if an argument has 64 bits; otherwise JAX's configuration applies.
    Random numbers are those that JAX draws from the same key.

    Parameters:
        fn: a function of arrays and pytrees, or a callable pytree, such as a module of equinox,
            whose arrays count as arguments.
        *args: tensors of the current graph, arrays, and whatever else fn takes, in pytrees.
        parameters: what arrays of floating or complex numbers among the arguments become:
            "variables", named by their path ("params/Dense_0/kernel"), or "constants". Other arrays
            are constants, and so are those that fn closes over.

    Returns: what fn returns, a tensor for each of its arrays.

    Raises: GraphError for primitives without a form, all of them at once, with how often each
    occurs and the line of the first; MissingBackendError without JAX; what fn raises when it is
    traced.

    Gradient: of the nodes; of what has a rule in JAX the transposed derivative of that rule.

    Source: tracing to jaxprs [Frostig et al. 2018, "Compiling machine learning programs via
    high-level tracing"].

    >>> import jax
    >>> x = gg.constant([-1.0, 0.5])
    >>> y = gg.interop.open_jax(lambda a: jax.nn.relu(a) * 3.0, x)
    >>> [node.type for node in y.graph.nodes]
    ['Constant', 'Relu', 'Constant', 'Multiply']
    >>> gg.evaluate([y, gg.gradients(y, x)])
    [array([0. , 1.5]), array([0., 3.])]
    """
    need_jax("open_jax()")
    check_openable(fn, parameters, "open_jax()")
    return _opening.opened(fn, args, parameters)


def check_openable(fn: Any, parameters: Any, who: str) -> None:
    """TypeError for input that is not a function, ValueError for other parameters."""
    if not callable(fn):
        raise TypeError(f"{who} takes a function of JAX arrays, got {fn!r}")
    if parameters not in PARAMETERS:
        raise ValueError(f"parameters is one of {PARAMETERS}, got {parameters!r}")
