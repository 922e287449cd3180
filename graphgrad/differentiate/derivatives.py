"""Derivatives made of gradients: vjp, Jacobian, Hessian, products with it, value and gradient.

All of them go through `gradients`, so marks and overrides count as they do there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, overload

import numpy as np

from ..base.errors import DTypeError, GradientError, ShapeError
from ..base.flags import truth
from ..base.tree import flatten, tree_map, unflatten
from ..ir.build import apply
from ..ir.node import Tensor
from ..ir.typed import K, MaybeNone, Nest, Total, X
from ..ops.base import Full, ZeroTensor
from ..ops.shape.joining import Stack
from .forward.jvp import deriving
from .gradients import check_holomorphic, gradients

__all__ = ["hessian", "hvp", "jacobian", "value_and_grad", "vjp"]

Overrides = Mapping[Any, Any] | str | None


def vjp(
    ys: Total,
    xs: X,
    grad_ys: Any,
    stop_gradients: Any = None,
    unconnected: str = "none",
    overrides: Overrides = None,
) -> X | MaybeNone:
    """Reverse mode: grad_ys times the Jacobian of ys with respect to xs.

    gradients() by its other name, with grad_ys not left out. Its counterpart in forward mode is
    jvp().

    Parameters:
        ys, xs: floating or complex tensors, or any nesting of list, tuple and dict of them.
        grad_ys: gradients of ys, in the structure of ys, of their shapes and dtypes.
        stop_gradients, unconnected, overrides: as for gradients().

    Returns: the structure of xs, with a tensor of x's shape and dtype, or None, for each x.

    Raises: what gradients() raises.

    >>> x = gg.constant([1.0, 2.0])
    >>> gg.evaluate(gg.vjp(x * x, x, np.array([1.0, 10.0])))
    array([ 2., 40.])
    """
    return gradients(ys, xs, grad_ys, stop_gradients, unconnected, overrides)


def jacobian(
    y: Tensor,
    xs: X,
    unconnected: str = "none",
    overrides: Overrides = None,
    holomorphic: bool = False,
) -> X | MaybeNone:
    """The derivative of every element of y with respect to every element of each x.

    Each element of y is differentiated separately with gradients(), so rules are called for each
    element.

    Parameters:
        y: a floating tensor of known shape; a complex one with holomorphic=True.
        xs: floating or complex tensors, or any nesting of list, tuple and dict of them.
        unconnected, overrides, holomorphic: as for gradients().

    Returns: the structure of xs, of tensors of shape y.shape + x.shape and the dtype of x; None (or
    zeros, for unconnected="zero") where nothing flows.

    Raises: GradientError if y is not a tensor; ShapeError where a length of y is unknown;
    DTypeError for a complex y that is not said to be holomorphic; what gradients() raises.

    >>> x = gg.constant([1.0, 2.0])
    >>> gg.evaluate(gg.jacobian(gg.cumsum(x * x), x))
    array([[2., 0.],
           [2., 4.]])
    """
    if not isinstance(y, Tensor):
        raise GradientError(f"jacobian() takes one tensor y, got {y!r}")
    if not y.type.static:
        raise ShapeError(
            f"the Jacobian of {y.name}: {y.type!r} (built at {y.where}) has one row for each of "
            "its elements, so every length of y has to be known"
        )
    x_list = flatten(xs)
    _check_parts("jacobian", y, x_list, holomorphic)
    seeds = list(_one_hot(y)) or [None]
    rows = [gradients(y, x_list, seed, None, unconnected, overrides, holomorphic) for seed in seeds]
    with deriving(y):
        jacobians = [_stacked(y, x, [row[i] for row in rows]) for i, x in enumerate(x_list)]
    return unflatten(xs, jacobians)


def _check_parts(who: str, y: Tensor, xs: Sequence[Any], holomorphic: bool) -> None:
    """DTypeError where one number for each pair of elements would not say how y depends on x."""
    if truth("holomorphic", holomorphic):
        check_holomorphic(who, [y, *[x for x in xs if isinstance(x, Tensor)]])
    elif y.type.complex:
        raise DTypeError(
            f"{who}() of a complex y needs holomorphic=True, got {y.name}: {y.type!r} (built at "
            f"{y.where}). If y is not a holomorphic function of complex xs, differentiate "
            "gg.real(y) and gg.imag(y) separately."
        )


def _one_hot(y: Tensor) -> Iterator[Any]:
    """The gradients of y that pick one element each, in row-major order."""
    assert y.size is not None
    for place in range(y.size):
        seed = np.zeros(y.size, y.dtype)
        seed[place] = 1
        yield seed.reshape(y.shape)


def _stacked(y: Tensor, x: Tensor, rows: Sequence[Tensor | None]) -> Tensor | None:
    """Rows side by side, under the shape of y; a row to which nothing flows is zero."""
    if all(row is None for row in rows):
        return None
    if 0 in y.shape:
        return _empty(y, x)
    level = [ZeroTensor(x) if row is None else row for row in rows]
    for row in level:
        row.node  # noqa: B018  a structural zero becomes a node
    for length in reversed(y.shape):
        assert isinstance(length, int)
        level = [apply(Stack(0), *level[i : i + length]) for i in range(0, len(level), length)]
    return level[0]


def _empty(y: Tensor, x: Tensor) -> Tensor:
    """The Jacobian of no elements."""
    if not x.type.static:
        raise ShapeError(
            f"the Jacobian of {y.name}, which has no elements, with respect to {x.name}: "
            f"{x.type!r} (built at {x.where}) has a shape that is not known"
        )
    return apply(Full((*y.shape, *x.shape), 0, x.dtype))


@overload
def hessian(
    y: Tensor,
    xs: Tensor,
    unconnected: str = "none",
    overrides: Overrides = None,
    holomorphic: bool = False,
) -> Tensor | MaybeNone: ...
@overload
def hessian(
    y: Tensor,
    xs: list[Tensor],
    unconnected: str = "none",
    overrides: Overrides = None,
    holomorphic: bool = False,
) -> list[list[Tensor]] | MaybeNone: ...
@overload
def hessian(
    y: Tensor,
    xs: dict[K, Tensor],
    unconnected: str = "none",
    overrides: Overrides = None,
    holomorphic: bool = False,
) -> dict[K, dict[K, Tensor]] | MaybeNone: ...
@overload
def hessian(
    y: Tensor,
    xs: Nest,
    unconnected: str = "none",
    overrides: Overrides = None,
    holomorphic: bool = False,
) -> Any: ...
def hessian(
    y: Tensor,
    xs: Any,
    unconnected: str = "none",
    overrides: Overrides = None,
    holomorphic: bool = False,
) -> Any:
    """The second derivatives of a 0-d y: the Jacobians of its gradients.

    With overrides it need not be symmetric.

    Parameters:
        y: a 0-d floating tensor; a complex one with holomorphic=True.
        xs: floating tensors of known shapes, or any nesting of list, tuple and dict of them;
            complex ones with holomorphic=True.
        unconnected, overrides, holomorphic: as for gradients().

    Returns: for one tensor x, a tensor of shape x.shape + x.shape. For a nesting xs, that
    structure, in each place the structure again: result[i][j] is the derivative by xs[j] of the
    gradient by xs[i], of shape xs[i].shape + xs[j].shape. None (or zeros) where nothing flows.

    Raises: ShapeError where y has axes or a length of an x is unknown; DTypeError for complex
    tensors that are not said to be holomorphic; what gradients() raises.

    >>> x = gg.constant([1.0, 2.0])
    >>> gg.evaluate(gg.hessian(x[0] * x[1] ** 2, x))
    array([[0., 4.],
           [4., 2.]])
    """
    _check_scalar(y, "hessian")
    leaves = flatten(xs)
    _check_parts("hessian", y, leaves, holomorphic)
    if not holomorphic:
        _check_real("hessian", leaves)
    firsts = gradients(y, leaves, None, None, unconnected, overrides, holomorphic)
    rows = [
        tree_map(lambda _: None, xs)
        if g is None
        else jacobian(g, xs, unconnected, overrides, holomorphic)
        for g in firsts
    ]
    return unflatten(xs, rows)


def _check_real(who: str, xs: Sequence[Any]) -> None:
    """DTypeError for complex xs of a real y: two derivatives by each, conjugate or not."""
    for x in xs:
        if isinstance(x, Tensor) and x.type.complex:
            raise DTypeError(
                f"{who}() of a real y with respect to {x.name}: {x.type!r} (built at {x.where}) "
                "has two parts for each pair of elements. Build x from two floating tensors, its "
                "real and imaginary parts, and differentiate with respect to those; or use "
                "gg.hvp."
            )


def hvp(
    y: Tensor,
    xs: X,
    vs: Any,
    unconnected: str = "none",
    overrides: Overrides = None,
    holomorphic: bool = False,
) -> X | MaybeNone:
    """The Hessian of a 0-d y times vs, without building it: the gradient of sum(grad * vs).

    With overrides, the matrix of hessian() need not be symmetric; vs multiplies it from the left.

    Parameters:
        y: a 0-d floating tensor; a complex one with holomorphic=True.
        xs: floating or complex tensors, or any nesting of list, tuple and dict of them.
        vs: tensors or arrays in the structure of xs, of their shapes and dtypes. Of a real y and
            complex xs, the result is the gradient of re(sum(grad * vs)), which is how y changes
            when xs move along vs.
        unconnected, overrides, holomorphic: as for gradients().

    Returns: the structure of xs, with a tensor of x's shape and dtype, or None, for each x.

    Raises: ShapeError where y has axes; GradientError where vs are not one for each x, or differ
    from it in shape or dtype; what gradients() raises.

    Source: [Pearlmutter 1994, "Fast exact multiplication by the Hessian"].

    >>> x = gg.constant([1.0, 2.0])
    >>> gg.evaluate(gg.hvp(x[0] * x[1] ** 2, x, np.array([1.0, 0.0])))
    array([0., 4.])
    """
    _check_scalar(y, "hvp")
    leaves, given = flatten(xs), flatten(vs)
    if len(given) != len(leaves):
        raise GradientError(f"hvp() got {len(given)} vs for {len(leaves)} xs")
    if any(v is None for v in given):
        raise GradientError("hvp() takes a tensor or an array for each x, got None among vs")
    firsts = gradients(y, leaves, overrides=overrides, holomorphic=holomorphic)
    flows = [(g, v) for g, v in zip(firsts, given, strict=True) if g is not None]
    if not flows:
        seen = {"unconnected": unconnected, "overrides": overrides, "holomorphic": holomorphic}
        return gradients(y, xs, **seen)  # type: ignore[arg-type]
    return gradients([g for g, _ in flows], xs, [v for _, v in flows], None, unconnected, overrides)


def _check_scalar(y: Any, what: str) -> None:
    if not isinstance(y, Tensor):
        raise GradientError(f"{what}() takes one tensor y, got {y!r}")
    if y.ndim:
        raise ShapeError(
            f"{what}() takes a y that is a single number, got {y.name}: {y.type!r} (built at "
            f"{y.where}). Sum it first, or use gg.jacobian of its gradient."
        )


@overload
def value_and_grad(
    y: Tensor, xs: X, overrides: Overrides = None, holomorphic: bool = False
) -> tuple[Tensor, X | MaybeNone]: ...
@overload
def value_and_grad(
    y: Callable[..., Tensor],
    xs: int | tuple[int, ...] = 0,
    overrides: Overrides = None,
    holomorphic: bool = False,
) -> Callable[..., tuple[Tensor, Any]]: ...
def value_and_grad(
    y: Any, xs: Any = 0, overrides: Overrides = None, holomorphic: bool = False
) -> Any:
    """A value with its gradient, of a tensor or of a function.

    Parameters:
        y: a 0-d floating tensor, a complex one with holomorphic=True, or a function that returns
            one. Arguments of the function are tensors or any nesting of them.
        xs: for a tensor y, the tensors as for gradients(); for a function, the number of the
            argument, or a tuple of numbers for a tuple of gradients.
        overrides, holomorphic: as for gradients().

    Returns: for a tensor, (y, gradients of y with respect to xs). For a function fn, a function of
    fn's arguments that returns (fn(...), the gradients).

    Raises: ShapeError where y has axes; GradientError if y is neither tensor nor function; what
    gradients() raises.

    >>> gg.evaluate(gg.value_and_grad(lambda w, x: gg.sum(w * x))(gg.constant([1.0, 2.0]), 3.0))
    (array(9.), array([3., 3.]))
    """
    if isinstance(y, Tensor):
        _check_scalar(y, "value_and_grad")
        return y, gradients(y, xs, overrides=overrides, holomorphic=holomorphic)
    if not callable(y):
        raise GradientError(f"value_and_grad() takes a tensor and xs, or a function, got {y!r}")
    return _of_function(y, xs, overrides, holomorphic)


def _of_function(
    fn: Callable[..., Any], places: int | tuple[int, ...], overrides: Overrides, holomorphic: bool
) -> Callable[..., Any]:
    @wraps(fn)
    def both(*args: Any, **kwargs: Any) -> Any:
        y = fn(*args, **kwargs)
        _check_scalar(y, "value_and_grad")
        xs = args[places] if isinstance(places, int) else tuple([args[i] for i in places])
        return y, gradients(y, xs, overrides=overrides, holomorphic=holomorphic)

    return both
