"""The own gradients of ops, with what the driver does for them: summing, zeros, dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.errors import GradientError, ShapeError, counted
from ..base.kinds import is_inexact
from ..ir.node import Tensor
from ..ir.op import Op
from ..ir.types import compatible
from ..ops.base import NO_GRAD, ZeroTensor, cast, is_zero
from ..ops.shape.reshaping import sum_to


def builtin(op: Op, step: Any, dys: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The own gradient of an op for a node or a site; None where nothing flows."""
    dxs = own_gradients(op, step, dys)
    return [
        None if dx is NO_GRAD else fitted(dx, x, op) for x, dx in zip(step.inputs, dxs, strict=True)
    ]


def own_gradients(op: Op, step: Any, dys: Sequence[Tensor | None]) -> Sequence[Any]:
    """What op.vjp gives for a node or a site; one for each input, else GradientError."""
    try:
        dxs = op.vjp(step, *dys)
    except Exception as error:
        error.add_note(f"in the gradient of {step.name}, a {op.type} built at {step.where}")
        raise
    if not isinstance(dxs, tuple | list):
        raise GradientError(
            f"the gradient of {step.name}, a {op.type} built at {step.where}, is {dxs!r}; "
            f"{op.type}.vjp returns a tuple with one gradient for each input"
        )
    if len(dxs) != len(step.inputs):
        raise GradientError(
            f"the gradient of {step.name}, a {op.type} built at {step.where}, has {len(dxs)} "
            f"entries for {counted(len(step.inputs), 'input')}"
        )
    return dxs


def fitted(dx: Any, x: Tensor, op: Op) -> Tensor:
    """A built-in gradient at the shape and dtype of its input, summed over broadcast axes."""
    if is_zero(dx):
        return ZeroTensor(x)
    try:
        type = dx.type
    except AttributeError:
        raise GradientError(
            f"the gradient of {op!r} for {x.name} ({x.where}) is {dx!r}; "
            f"{op.type}.vjp gives a tensor, ZERO or NO_GRAD for each input"
        ) from None
    if type is x.type and (not op.broadcasts or None not in x.type.shape):
        return dx  # type: ignore[no-any-return]
    if not op.broadcasts and not compatible(type.shape, x.shape):
        raise ShapeError(
            f"the gradient of {op!r} for {x.name} ({x.where}) is {type!r}, but the input is "
            f"{x.type!r}; the shapes must be equal unless the op declares `broadcasts`"
        )
    return sum_to(cast(dx, x.dtype), like=x)


def given(op: Op, outputs: Sequence[Tensor], dys: Sequence[Tensor | None]) -> Any:
    """What the own gradient of an op is given for these gradients of its outputs."""
    return dys if op.derivative.sparse else filled(outputs, dys)


def filled(outputs: Sequence[Tensor], dys: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Zeros for missing gradients of floating and complex outputs; None stays for the others."""
    return [
        ZeroTensor(y) if dy is None and is_inexact(y.dtype) else dy
        for y, dy in zip(outputs, dys, strict=True)
    ]
