"""`custom_gradient`: a function together with its gradient, as a region with a pinned boundary."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import FunctionType
from typing import Any

from ..base.errors import DTypeError, GradientError, GraphGradError, RegionError, counted
from ..base.position import Position, caller, file_of, is_library, of_function, show
from ..base.tree import flatten, unflatten
from ..base.words import shortened
from ..ir.build import apply, graph_elsewhere, read_here
from ..ir.context import CONTEXT
from ..ir.graph import GraphScope, current
from ..ir.node import Region, Tensor
from ..ir.typed import X
from ..ops.base import as_tensor
from ..ops.control import BodyGraph
from ..ops.sources import Identity
from ..regions.boundary import take_in_pins, why_idle
from ..regions.rules import Rule
from ..regions.scopes import override_gradient, reads_outside
from .second import with_second
from .site import Site

__all__ = ["custom_gradient", "grad_pass_through"]


def custom_gradient(f: Callable[..., tuple[X, Callable[..., Any]]]) -> Callable[..., X]:
    """Decorator: f(*xs) returns (y, grad_fn), and grad_fn gives the gradient of what f built.

    Each call is a separate region, whose inputs are the arguments and whose outputs are one
    Identity node per returned tensor. Intermediate values that grad_fn closes over are residuals:
    at second order they are differentiated too. xs and y are tensors, or any nesting of list, tuple
    and dict of them. Numbers and arrays among xs become constants, and grad_fn returns a gradient
    for them like for any argument.

    grad_fn(*dys) returns one gradient per argument leaf, like a rule. It may close over any tensor.
    If f reads variables that are not arguments, grad_fn takes a keyword argument `variables` and
    returns (dxs, dvars). It may also return (dxs, grad_fn2), where grad_fn2 is the gradient of dxs
    with respect to xs, and so on for higher orders.

    Parameters: f: a function of tensors, that returns (y, grad_fn).

    Returns: a function of the same arguments that returns y.

    Raises: on a call, GradientError if f does not return such a pair, and RegionError if the call
    has only integer and bool inputs or outputs, since its grad_fn could never be called. On
    differentiation, GradientError if a gradient has to flow through a captured tensor for which
    grad_fn returns none.

    Gradient: that of grad_fn.

    Source: the protocol of tf.custom_gradient.

    >>> @gg.custom_gradient
    ... def stable(x):
    ...     e = gg.exp(x)
    ...     return gg.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))
    >>> x = gg.constant(100.0)
    >>> gg.evaluate(gg.gradients(stable(x), x))
    array(1.)
    """

    defined = of_function(f)
    at = caller() if defined is None or is_library(file_of(defined)) else defined

    @wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = _positional(f, args, kwargs)
        elsewhere = graph_elsewhere(flatten(given))
        if elsewhere is not None:
            with GraphScope(elsewhere, implicit=True):
                return call(*args, **kwargs)
        leaves = read_here(_tensors(f, given))
        rule = Rule(_not_yet, getattr(f, "__name__", "custom_gradient"), position=at)
        start = len(current().graph.nodes)
        with override_gradient(rule, allow_empty=True) as region:
            region.kind = "custom_gradient"
            y, grad_fn = _pair(f, f(*unflatten(given, leaves), **_rest(f, args, kwargs)))
            outputs = [apply(Identity(), t) for t in _results(f, y)]
            region.declare(outputs=outputs)
        variables = _variables(region, start, leaves) if _takes_variables(grad_fn) else []
        region.pinned_inputs = (*leaves, *variables)
        take_in_pins(region)
        _check_not_idle(f, at, region, start, outputs)
        rule.fn = _rule(grad_fn, len(leaves), variables)
        return unflatten(y, outputs)

    return call


def grad_pass_through(f: Callable[..., X]) -> Callable[..., X]:
    """f with the gradient of the identity: dys go back unchanged, one for each argument.

    Parameters: f: a function of tensors that returns as many as it takes, of their shapes and
    dtypes.

    Returns: f as a function of the same arguments.

    Raises: GradientError, when it is differentiated, where a gradient does not fit its argument.

    Gradient: dx = dy for each argument [Bengio, Leonard, Courville 2013, "Estimating or propagating
    gradients through stochastic neurons"].

    >>> x = gg.constant([0.4, 1.6])
    >>> gg.evaluate(gg.gradients(gg.grad_pass_through(gg.round)(x), x))
    array([1., 1.])
    """

    @wraps(f)
    def with_identity_gradient(*args: Any) -> Any:
        return f(*args), lambda *dys: dys

    return custom_gradient(with_identity_gradient)


def _not_yet(site: Site, *dys: Any) -> Any:
    raise GradientError(f"{site!r} is differentiated while it is still being built")


# --- arguments and results --------------------------------------------------------------------


def _positional(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments by position; keywords that hold tensors get the position they stand for."""
    named = {k: v for k, v in kwargs.items() if _holds_tensors(v)}
    if not named:
        return args
    bound = inspect.signature(f).bind(*args, **kwargs)
    if bound.kwargs:
        extra = [k for k in bound.kwargs if k in named]
        if extra:
            raise GradientError(
                f"{f.__name__} ({show(of_function(f))}) takes the tensor {extra[0]!r} by keyword "
                "only, so its gradient has no position; make it a positional argument"
            )
    return bound.args


def _tensors(f: Any, given: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """The leaves of the arguments as tensors; DTypeError with the name of what is none."""
    tensors: list[Tensor] = []
    for i, argument in enumerate(given):
        try:
            tensors += [as_tensor(leaf) for leaf in flatten(argument)]
        except GraphGradError as error:
            raise _no_tensor(f, i, argument) from error
    return tuple(tensors)


def _no_tensor(f: Any, i: int, argument: Any) -> DTypeError:
    names = [*inspect.signature(f).parameters]
    name = names[i] if i < len(names) else names[-1]
    hint = (
        "Decorate a function of the tensors inside the method, or wrap the bound method: "
        f"`self.{f.__name__} = gg.custom_gradient(self.{f.__name__})`."
        if i == 0 and hasattr(type(argument), getattr(f, "__name__", ""))
        else "Put it into the closure of an inner function, or use functools.partial."
    )
    return DTypeError(
        f"the argument {name!r} of {getattr(f, '__name__', f)} ({show(of_function(f))}), decorated "
        f"with custom_gradient and called at {show(caller())}, is {shortened(repr(argument), 80)}: "
        f"each argument gets a gradient, so it is a tensor, or numbers.\n{hint}"
    )


def _rest(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The keywords that did not become positional."""
    if not any(_holds_tensors(v) for v in kwargs.values()):
        return kwargs
    return inspect.signature(f).bind(*args, **kwargs).kwargs


def _holds_tensors(value: Any) -> bool:
    return any(isinstance(leaf, Tensor) for leaf in flatten(value))


def _pair(f: Any, returned: Any) -> tuple[Any, Callable[..., Any]]:
    if isinstance(returned, tuple) and len(returned) == 2 and callable(returned[1]):
        return returned
    got = f"{len(returned)} values" if isinstance(returned, tuple) else f"{returned!r}"
    if returned is None:
        got = "None (is a `return` missing?)"
    hint = (
        "Group the results: `return (z, w), grad_fn`."
        if isinstance(returned, tuple) and returned and callable(returned[-1])
        else "The second is a function of the gradients of the results."
    )
    raise GradientError(
        f"{getattr(f, '__name__', f)} ({show(of_function(f))}), decorated with custom_gradient, "
        f"returns a pair (results, grad_fn), got {got}.\n{hint}"
    )


def _results(f: Any, y: Any) -> list[Tensor]:
    results = flatten(y)
    for t in results:
        if not isinstance(t, Tensor):
            raise GradientError(
                f"{getattr(f, '__name__', f)} ({show(of_function(f))}) returned {t!r} among its "
                "results, which is not a tensor"
            )
    return results


def _check_not_idle(
    f: Any, at: Position | None, region: Region, start: int, outputs: Sequence[Tensor]
) -> None:
    """RegionError where no gradient can reach grad_fn; what f captures may be what it is for."""
    inputs = region.pinned_inputs or ()
    if not any(t.type.differentiable for t in inputs):
        members = [n for n in region.graph.nodes[start:] if region.contains(n.region)]
        inputs = (*inputs, *reads_outside(region, members))
    why = why_idle(inputs, outputs)
    if why:
        raise RegionError(
            f"{getattr(f, '__name__', f)} ({show(at)}), decorated with custom_gradient and called "
            f"at {show(caller())}, {why}\nCast what should have a gradient to floats first, or "
            "call a function that is not decorated."
        )


def _takes_variables(grad_fn: Callable[..., Any]) -> bool:
    plain = isinstance(grad_fn, FunctionType) and not grad_fn.__dict__  # it wraps nothing
    if plain and "variables" not in grad_fn.__code__.co_varnames:
        return False
    try:
        return "variables" in inspect.signature(grad_fn).parameters
    except (TypeError, ValueError):
        return False


def _variables(region: Region, start: int, leaves: Sequence[Tensor]) -> list[Tensor]:
    """The variables read inside that are not arguments, in order of first use."""
    variables: dict[Tensor, None] = {}
    for node in region.graph.nodes[start:]:
        if region.contains(node.region):
            variables.update((t, None) for t in node.inputs if _is_variable(t))
    return [t for t in variables if not any(t is x for x in leaves)]


def _is_variable(t: Tensor) -> bool:
    """Whether t is a variable, or stands for one in a body."""
    while isinstance(t.graph, BodyGraph) and (home := t.graph.home_of(t)) is not None:
        t = home
    return t.node.type == "Variable"


# --- the rule ---------------------------------------------------------------------------------


def _rule(
    grad_fn: Callable[..., Any], arity: int, variables: Sequence[Tensor]
) -> Callable[..., Any]:
    """The region's rule: grad_fn, with what it returned put in the order of the inputs."""

    def rule(site: Site, *dys: Any) -> Any:
        graph = CONTEXT.get().graph
        start, first_region = len(graph.nodes), len(graph.regions)
        returned = _ask(grad_fn, site, dys, variables)
        second = None
        if isinstance(returned, tuple) and len(returned) == 2 and callable(returned[1]):
            returned, second = returned
        entries = _gradients_of(returned, variables)
        if second is not None:
            defined = of_function(second)
            rule2 = Rule(_rule(second, arity, ()), "second", position=defined)
            entries = with_second(site, dys, entries, rule2, arity, start, first_region)
        return entries

    return rule


def _ask(
    grad_fn: Callable[..., Any], site: Site, dys: Sequence[Any], variables: Sequence[Tensor]
) -> Any:
    further = {"variables": list(variables)} if _takes_variables(grad_fn) else {}
    try:
        return grad_fn(*dys, **further)
    except TypeError as error:
        signature = inspect.signature(grad_fn)
        try:
            signature.bind(*dys, **further)
        except TypeError:
            rows = "".join(f"\n  dy of {t!r}" for t in site.outputs)
            raise GradientError(
                f"grad_fn (defined at {show(of_function(grad_fn))}) of {site!r} gets "
                f"{counted(len(dys), 'gradient')}, one per result, but it is "
                f"{getattr(grad_fn, '__name__', 'grad_fn')}{signature}. The results are{rows}"
            ) from error
        raise


def _gradients_of(returned: Any, variables: Sequence[Tensor]) -> Any:
    """One flat list of entries: of the arguments, then of the variables."""
    if not variables:
        pair = isinstance(returned, tuple) and len(returned) == 2
        nothing = pair and isinstance(returned[1], list | tuple) and not returned[1]
        return returned[0] if nothing else returned
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise GradientError(
            "a grad_fn that takes `variables` returns a pair (dxs, dvars), got "
            f"{type(returned).__name__}"
        )
    dxs, dvars = returned
    dvars = list(dvars) if isinstance(dvars, list | tuple) else [dvars]
    if len(dvars) != len(variables):
        rows = ", ".join(f"{v.name} ({v.where})" for v in variables)
        raise GradientError(
            f"grad_fn returned {counted(len(dvars), 'gradient')} for the "
            f"{counted(len(variables), 'variable')} {rows}"
        )
    if isinstance(dxs, Mapping):
        return {**dxs, **dict(zip(variables, dvars, strict=True))}
    return [*(dxs if isinstance(dxs, list | tuple) else [dxs]), *dvars]
