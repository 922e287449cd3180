"""What rules of the library ask of their site."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..base.errors import DTypeError, GradientError
from ..differentiate.site import Site
from ..ir.node import Node, Tensor
from ..ir.types import compatible
from ..ops.base import NO_GRAD, TensorLike, apply, cast, is_zero, like
from ..ops.reduce.reductions import normal_axes
from ..ops.reduce.reductions import sum as reduce_sum


def single(site: Site) -> tuple[Tensor, Tensor]:
    """The one floating input and the one output; GradientError where there are several."""
    xs = [x for x in site.inputs if x.type.differentiable]
    if len(xs) != 1 or len(site.outputs) != 1:
        raise GradientError(
            f"this rule is for one floating input and one output, {site!r} has the inputs "
            f"{_listed(site.inputs)} and the outputs {_listed(site.outputs)}.\n"
            "Put it around fewer ops, or write a rule that returns a gradient for each input."
        )
    return xs[0], site.outputs[0]


def real_numbers(site: Site, x: Tensor) -> None:
    """DTypeError where the input is complex and the rule is for real numbers."""
    if x.type.complex:
        raise DTypeError(
            f"this rule is for real numbers, {site!r} has the input {_listed([x])}.\n"
            "Put it around ops on gg.real(x) and gg.imag(x), or write a rule."
        )


def alike(site: Site) -> tuple[Tensor, Tensor]:
    """As `single`, of the same shape; GradientError where the shapes differ."""
    x, y = single(site)
    if x.shape != y.shape:
        raise GradientError(
            f"this rule gives the input the shape of the output, {site!r} has the input "
            f"{_listed([x])} and the output {_listed([y])}"
        )
    return x, y


def reduced(site: Site, axis: Any) -> Tensor:
    """The input of `single`; GradientError unless the output is without an axis, or has it kept."""
    x, y = single(site)
    axes = normal_axes(axis, x.ndim)
    without = [n for i, n in enumerate(x.shape) if i not in axes]
    kept = [1 if i in axes else n for i, n in enumerate(x.shape)]
    if not any(compatible(y.shape, tuple(shape)) for shape in (without, kept)):
        raise GradientError(
            f"this rule is for a reduction along axis {axis}, {site!r} has the input "
            f"{_listed([x])} and the output {_listed([y])}"
        )
    return x


def stands_on(site: Site, types: Sequence[str]) -> None:
    """GradientError where a site is one op of another type; of several ops it may be any."""
    found = [n.type for n in site.nodes if n.type != "Identity"]
    if types and len(found) == 1 and found[0] not in types:
        raise GradientError(f"this rule is for {' or '.join(types)}, {site!r} is one of {found[0]}")


def _listed(tensors: Sequence[Tensor]) -> str:
    return ", ".join(f"{t.name}: {t.type!r}" for t in tensors) or "none"


def only(site: Site, x: Tensor, dx: Tensor) -> list[Any]:
    """One entry per input: dx, in the dtype of x, for x, and nothing for the others."""
    return [cast(dx, x.dtype) if t is x else NO_GRAD for t in site.inputs]


def changed(site: Site, dys: Sequence[Tensor], change: Callable[[Tensor], Tensor]) -> list[Any]:
    """The gradients without the rule, each changed; what is structurally zero stays."""
    return [
        dx if dx is NO_GRAD or is_zero(dx) else cast(change(dx), dx.dtype)
        for dx in site.default(*dys)
    ]


def number(value: TensorLike, x: Tensor) -> Tensor:
    """A parameter of a rule as a tensor of the dtype of x."""
    return cast(like(value, x), x.dtype)


def total(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The sum, in the dtype of x."""
    return cast(reduce_sum(x, axis, keepdims), x.dtype)


# --- layers -----------------------------------------------------------------------------------


class Layer(NamedTuple):
    """A site that is `x @ w`, a convolution or its adjoint in x, or one of these plus a bias.

    flipped  whether w is its first factor
    """

    node: Node
    x: Tensor
    w: Tensor
    bias: Tensor | None
    flipped: bool = False

    def applied(self, x: Tensor, w: Tensor, bias: Tensor | None) -> Tensor:
        """The layer's output for other tensors."""
        y = apply(self.node.op, *((w, x) if self.flipped else (x, w)), *self.node.inputs[2:])
        return y if bias is None else y + bias


SIGNAL = {"MatMul": 0, "Conv2D": 0, "Conv2DBackpropInput": 1}
"""Of what a layer may be, the place of the input that is not a weight, unless the question says."""
BILINEAR = tuple(SIGNAL)


def layer(site: Site) -> Layer:
    """The parts of a layer; GradientError where the site is something else."""
    products = [n for n in site.nodes if n.type in BILINEAR]
    others = [n for n in site.nodes if n.inputs and n.type not in (*BILINEAR, "Identity")]
    if len(products) != 1 or len(others) > 1 or any(n.type != "Add" for n in others):
        types = ", ".join(n.type for n in site.nodes)
        raise GradientError(
            f"this rule is for a layer: a MatMul, a Conv2D or its adjoint, and in a region at most "
            f"the addition of a bias; {site!r} consists of {types}"
        )
    (node,) = products
    biases = [t for n in others for t in n.inputs if t.node is not node]
    at = SIGNAL[node.type]
    x, w = node.inputs[at], node.inputs[1 - at]
    return Layer(node, x, w, biases[0] if biases else None, flipped=at == 1)
