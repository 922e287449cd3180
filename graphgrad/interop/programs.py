"""Programs of JAX and PyTorch: what opening makes of them, and the way back with rules put on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

from ..base.lazy import lazy_module
from ..ir.graph import Graph
from ..ops.foreign.jax_function import need_jax
from .jax_functions import number_of_gradients
from .jax_programs import check_openable
from .reports import OpenReport
from .torch_programs import check_openable_torch, is_of_torch

__all__ = ["open_report", "retrofit"]

_opening: Any = lazy_module("graphgrad.interop.jax_primitives.opening")
_opening_torch: Any = lazy_module("graphgrad.interop.torch_operators.opening")
_retrofitting_torch: Any = lazy_module("graphgrad.interop.torch_operators.retrofitting")
_retrofitting: Any = lazy_module("graphgrad.interop.jax_primitives.retrofitting")


def open_report(fn: Callable[..., Any], *args: Any, parameters: str = "variables") -> OpenReport:
    """What `open_jax` or `open_torch` makes of a program, without building it.

    Parameters:
        fn: as for `open_jax`, or a module of PyTorch as for `open_torch`. A function is taken for
            one of PyTorch where a tensor of torch is among args.
        *args: as for these; `jax.ShapeDtypeStruct` stands for a tensor, and so does one of torch on
            the device "meta".
        parameters: as for these.

    Returns: an OpenReport: `.rows`, what each kind of operation became; `.rules`, the rules that
    become regions; `.draws`, what draws random numbers; `.missing`, what cannot be opened, with the
    line of the first; `.weights`, the variables by name; `.writes`, those of them that the program
    writes. `print` shows it as a table.

    Raises: MissingBackendError without JAX; what fn raises when it is traced; TypeError for input
    that is not a function; GradientError for hooks on gradients, and tensors whose gradient would
    be lost.

    >>> import jax
    >>> p, x = {"w": np.ones((3, 4))}, jax.ShapeDtypeStruct((2, 3), "float64")
    >>> report = gg.interop.open_report(lambda p, a: jax.nn.relu(a @ p["w"]), p, x)
    >>> [(row.theirs, dict(row.ours)) for row in report.rows]
    [('dot_general', {'MatMul': 1}), ('jax.nn.relu', {'Relu': 1})]
    >>> report.missing, report.weights
    ((), {'w': float64[3, 4]})
    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
    >>> report = gg.interop.open_report(net, torch.empty(2, 3, device="meta"))
    >>> report.rows[1].theirs, list(report.weights)
    ('relu', ['0.weight', '0.bias'])
    """
    return report_of(fn, args, parameters, is_of_torch(fn, args))


def report_of(fn: Any, args: Sequence[Any], parameters: str, of_torch: bool) -> OpenReport:
    """What `open_report` returns, of a program that is one of PyTorch or of JAX."""
    if of_torch:
        check_openable_torch(fn, parameters, "open_report()")
        return _opening_torch.reported(fn, args, parameters)  # type: ignore[no-any-return]
    need_jax("open_report()")
    check_openable(fn, parameters, "open_report()")
    return _opening.reported(fn, args, parameters)  # type: ignore[no-any-return]


def retrofit(
    fn: Callable[..., Any],
    mark: Callable[[Graph], object],
    *examples: Any,
    gradients: int = 2,
) -> Callable[..., Any]:
    """Add rules inside a JAX function or a PyTorch module, and return a JAX function or PyTorch
    module.

    The function is opened as by `open_jax` or `open_torch`, `mark` puts rules on its graph, and the
    result is compiled: it has the same values, and the gradients of the rules.

    A JAX function takes and returns the pytrees of fn, and works with `jax.jit`, `grad`, `vmap`,
    `scan` and all transforms listed for `as_jax`. All arguments of fn, including trees of
    parameters, remain arguments with gradients.

    A PyTorch module becomes a module with the same parameters, buffers, children and modes:
    training one trains the other, and they share a `state_dict`. `backward`, `torch.func` and the
    other features of `to_torch` work; writes into buffers are carried out. A function of tensors
    becomes a function.

    Parameters:
        fn: a function of arrays and pytrees, or a callable pytree, such as a module of equinox; or
            a module of PyTorch, a method of one, or a function, which is one of PyTorch where it is
            called with its tensors.
        mark: mark(graph) marks the graph: graph.mark(gg.select.op("Relu"), gg.rules.guided()).
        *examples: arguments for which it is opened now. For others, and without examples, it is
            opened when it is called, once for each signature: shapes, dtypes, the structure of the
            arguments, the values of what is not an array, and which modules are in training.
        gradients: how many times it may be differentiated. Once more is an error.

    Returns: a function, or a module of PyTorch, that is called as fn is.

    Raises: MissingBackendError without JAX; what `open_jax`, `open_torch` and `mark` raise, when it
    is opened; StateError where `mark` adds variables; TypeError for input that is not a function;
    ValueError for less than 0 gradients.

    Gradient: that of the rules, and of JAX or PyTorch elsewhere.

    >>> import jax
    >>> def quantised(x):
    ...     return jax.numpy.sum(jax.numpy.round(x) ** 2)
    >>> through = gg.interop.retrofit(quantised, lambda g: g.mark("Round", gg.rules.ste()))
    >>> x = np.array([1.2, 2.7], "float32")
    >>> jax.grad(quantised)(x), jax.grad(through)(x)
    (Array([0., 0.], dtype=float32), Array([2., 6.], dtype=float32))
    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    >>> guided = gg.interop.retrofit(net, lambda g: g.mark("Relu", gg.rules.guided()))
    >>> guided(torch.ones(1, 2)).sum().backward()
    >>> guided[0].weight is net[0].weight, net[0].weight.grad.shape
    (True, torch.Size([2, 2]))
    """
    if not callable(mark) or not (callable(fn) or is_of_torch(fn, ())):
        wrong = mark if callable(fn) else fn
        raise TypeError(
            f"retrofit() takes a function of JAX or a module of PyTorch, and mark(graph), got "
            f"{wrong!r}"
        )
    counted = number_of_gradients(gradients)
    if is_of_torch(fn, examples):
        return _retrofitting_torch.retrofitted(fn, mark, counted, examples)  # type: ignore[no-any-return]
    if not examples and "torch" in sys.modules:
        return ByArguments(fn, mark, counted)
    return _of_jax(fn, mark, counted, examples)


def _of_jax(
    fn: Callable[..., Any], mark: Callable[[Graph], object], gradients: int, examples: Any
) -> Callable[..., Any]:
    need_jax("retrofit()")
    made = _retrofitting.Retrofitted(fn, mark, gradients)
    if examples:
        made.open(*examples)
    return made  # type: ignore[no-any-return]


class ByArguments:
    """`retrofit` of a function of which nothing says yet whose it is: what it is called with."""

    def __init__(
        self, fn: Callable[..., Any], mark: Callable[[Graph], object], gradients: int
    ) -> None:
        update_wrapper(self, fn)
        self._given = fn, mark, gradients, ()
        self._made: dict[bool, Callable[..., Any]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What fn returns, with the gradients of the rules."""
        of_torch = is_of_torch(self._given[0], (args, kwargs))
        if of_torch not in self._made:
            make = _retrofitting_torch.retrofitted if of_torch else _of_jax
            self._made[of_torch] = make(*self._given)
        return self._made[of_torch](*args, **kwargs)
