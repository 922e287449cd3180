"""The variables of layers: kernels and biases, and what scales and shifts channels."""

from __future__ import annotations

from typing import Any, NamedTuple

from .graph import Tensor
from .initializers import zeros_initializer
from .ops import nn
from .variable_scope import get_variable

__all__ = ["Parameter", "biased", "weights"]


class Parameter(NamedTuple):
    """A variable of a layer: its name, what it starts with, what regularizes and bounds it."""

    name: str
    initializer: Any = None
    regularizer: Any = None
    constraint: Any = None

    def of(self, x: Tensor, shape: list[Any], trainable: bool = True) -> Any:
        """The variable, of the type of the inputs."""
        return get_variable(
            self.name, shape, x.dtype, self.initializer, self.regularizer, trainable,
            constraint=self.constraint,
        )  # fmt: skip


def weights(
    x: Tensor, shape: list[Any], channels: int, kernel: Parameter, bias: Parameter | None,
    trainable: bool,
) -> tuple[Any, Any]:  # fmt: skip
    """The kernel of this shape, and the bias of so many channels, zeros by default, or None."""
    w = kernel.of(x, shape, trainable)
    if bias is None:
        return w, None
    start = bias.initializer or zeros_initializer()
    return w, bias._replace(initializer=start).of(x, [channels], trainable)


def biased(y: Tensor, bias: Any, data_format: Any = None) -> Tensor:
    """y, and a bias, where there is one, for each channel."""
    return y if bias is None else nn.bias_add(y, bias, data_format=data_format)
