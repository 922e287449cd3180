"""What the laws have in common: an op put into a graph, numbers to try it with, comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..base.errors import ShapeError
from ..base.kinds import kind_of
from ..compiled import compile
from ..ir.build import build
from ..ir.graph import Graph
from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.types import Array
from ..ops.sources import placeholder

Arrays = Sequence[Array]

DOUBLE = (np.float64, np.complex128)
NARROW = (np.float32, np.complex64)


class BrokenLaw(AssertionError):
    """A law does not hold for an op."""


class NotTried(Exception):
    """A law says nothing of this op, or not of these inputs, and why.

    told  whether who wrote the op wants to know
    """

    def __init__(self, why: str, told: bool = False) -> None:
        super().__init__(why)
        self.told = told


def require(holds: Any, otherwise: str) -> None:
    """BrokenLaw unless that holds."""
    if not holds:
        raise BrokenLaw(otherwise)


def placed(op: Op, arrays: Arrays) -> tuple[list[Tensor], Node]:
    """(inputs, node): the op on placeholders of the arrays' types, in a graph of its own."""
    with Graph():
        xs = [placeholder(a.shape, a.dtype, name=f"x{i}") for i, a in enumerate(arrays)]
        return xs, build(op, tuple(xs))


def home(node: Node) -> Graph:
    """The graph it was built in."""
    assert node.graph is not None
    return node.graph


def placed_unknown(op: Op, arrays: Arrays) -> tuple[list[Tensor], Node]:
    """The same, with no length known; NotTried where there is none, or the op needs one."""
    if not any(a.ndim for a in arrays):
        raise NotTried("no input has a length")
    with Graph():
        xs = [placeholder((None,) * a.ndim, a.dtype) for a in arrays]
        try:
            return xs, build(op, tuple(xs))
        except ShapeError as error:
            raise NotTried("it needs known lengths", told=True) from error


def compiled(placement: tuple[list[Tensor], Node], **options: Any) -> Any:
    """The outputs of such a node as a function of its inputs."""
    xs, node = placement
    return compile(xs, list(node.outputs), **options)


def run_kernel(op: Op, arrays: Arrays) -> tuple[Any, ...]:
    """The outputs of its kernel."""
    with np.errstate(all="ignore"):
        outputs = op.kernel(np, *arrays)
    return outputs if isinstance(outputs, tuple) else (outputs,)


def differentiable(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Those that have a gradient."""
    return [t for t in tensors if t.type.differentiable]


def drawn(rng: np.random.Generator, like: Any) -> Array:
    """Normal numbers of an array's shape and dtype, in both parts of complex ones."""
    made: Any = rng.normal(size=like.shape)
    if kind_of(like.dtype) == "c":
        made = made + 1j * rng.normal(size=like.shape)
    return np.asarray(made, like.dtype)


def paired(lefts: Iterable[Any], rights: Iterable[Any]) -> Any:
    """The real product re(sum(left * right)), in which a gradient is paired with a direction."""
    return sum(np.sum(a * b).real for a, b in zip(lefts, rights, strict=True))


def close(got: Any, want: Any) -> None:
    """Equal but for the order of additions."""
    tolerance = 2e-5 if got.dtype in NARROW else 1e-12
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)


def equal(got: Any, want: Any, what: str, rtol: float, atol: float | None = None) -> None:
    """BrokenLaw unless two numbers are the same, but for a tolerance."""
    near = np.isclose(got, want, rtol=rtol, atol=rtol if atol is None else atol, equal_nan=True)
    require(near, what.format(got, want))


def of_type(value: Any, like: Any, what: str) -> None:
    """BrokenLaw unless a value has the shape and dtype of something."""
    require(
        (value.shape, value.dtype) == (tuple(like.shape), like.dtype),
        f"{what} is {value.dtype}{list(value.shape)}, not {like.dtype}{list(like.shape)}",
    )


def is_double(arrays: Iterable[Any]) -> bool:
    """Whether all are in double precision."""
    return all(a.dtype in DOUBLE for a in arrays)
