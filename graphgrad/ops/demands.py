"""Conditions on parameters that may be tensors, checked as soon as the value is known."""

from __future__ import annotations

from collections.abc import Callable

from ..base.domains import Domain
from .base import (
    NO_GRAD,
    Any,
    Array,
    Constant,
    Derivative,
    DTypeError,
    Gradients,
    Memory,
    Node,
    Op,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    apply,
    array_of,
    as_tensor,
    cast,
    kind_of,
    np,
)

__all__ = ["Demand"]


class Demand(Op):
    """y = x, where a condition holds everywhere; a run raises ValueError where it does not.

    Gradient: dx = dy.

    Inputs: x, and the condition, bool, of any shape.

    said  what holds, in words
    """

    said: str
    memory = Memory(view=True)
    flop_free = True
    linear = (0,)
    derivative = Derivative(relevance="moved")

    def infer(self, x: TensorType, holds: TensorType) -> Types:
        if kind_of(holds.dtype) != "b":
            raise DTypeError(f"a condition is bool, got {holds!r}")
        return (x,)

    def kernel(self, xp: Any, x: Any, holds: Any) -> Any:
        check(self.said, x, holds)
        return x

    def to_onnx(self, to: Any, x: Any, holds: Any) -> Any:
        """x: ONNX has no errors."""
        return to.Identity(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return dy, NO_GRAD

    def batch(self, batch: Any) -> Any:
        """Where it does not hold for one example, the batch fails."""
        return batch.build(self, *batch.every())

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls("x is right"), [rng.normal(size=(2, 3)), np.ones((2, 3), bool)]
        yield cls("x is right"), [rng.normal(size=(3,)), np.array(True)]


def check(said: str, x: Array, holds: Array) -> None:
    """ValueError unless a condition holds everywhere; of x it shows what it does not hold for."""
    if not holds.all():
        raise ValueError(f"{said}, got {x[~holds].flat[0] if holds.shape == x.shape else x}")


def demand(said: str, value: TensorLike, holds: Callable[[Any], Any]) -> Any:
    """The value, of which a condition has to hold; what is said where it does not.

    ValueError where that is known, else of a run: then it is the tensor that a run has checked.

    holds  a function of operators and NumPy's functions, which take an array or a tensor
    """
    if isinstance(value, Tensor) and type(value.node.op) is not Constant:
        return apply(Demand(said), value, holds(value))
    with np.errstate(all="ignore"):
        check(said, _array(value), np.asarray(holds(_array(value))))
    return value


def within(domain: Domain, what: str, value: TensorLike) -> Any:
    """The value: a number or numbers of a domain, which a tensor has to hold when it is run."""
    if domain.takes(value):
        return domain(what, value)
    _check_kind(domain, what, value)
    value = value if isinstance(value, Tensor) else array_of(value)
    return value if domain.unbounded else demand(f"{what} is {domain}", value, domain.holds)


def within_dtype(domain: Domain, what: str, value: TensorLike, dtype: Any) -> Tensor:
    """The value as a tensor of a dtype, in which it still has to be of the domain."""
    if isinstance(value, Tensor):
        _check_kind(domain, what, value)
    else:
        value = within(domain, what, value)
    with np.errstate(all="ignore"):
        made = cast(as_tensor(value, dtype), dtype)
    checked: Tensor = within(domain, what, made)
    return checked


def number(domain: Domain, what: str, value: TensorLike) -> Any:
    """The value: one number is of the domain; of many, the docs say what those outside give."""
    if not domain.takes(value):
        _check_kind(domain, what, value)
        return value
    return domain(what, value)


def _check_kind(domain: Domain, what: str, value: TensorLike) -> None:
    dtype = value.dtype if isinstance(value, Tensor) else array_of(value).dtype
    if isinstance(value, bool) or kind_of(dtype) not in domain.kinds:
        raise TypeError(f"{what} is {domain}, got {value!r}")


def in_order(
    low: str, a: TensorLike, high: str, b: TensorLike, *, strict: bool = False
) -> tuple[Any, Any]:
    """Both, of which the first is less than the second, or not strictly so: now or when run."""
    said = f"{low} {'<' if strict else '<='} {high}"
    if isinstance(a, Tensor) and type(a.node.op) is not Constant:
        return demand(said, a, lambda a: a < b if strict else a <= b), b
    least = _array(a)
    checked = demand(said, b, lambda b: b > least if strict else b >= least)
    return a if isinstance(a, Tensor) else least, checked


def _array(value: Any) -> Any:
    """The array that a constant or a value is."""
    if isinstance(value, Tensor) and isinstance(value.node.op, Constant):
        return value.node.op.value
    return array_of(value)
