"""Families of ops that call a SciPy function, named by `scipy`.

Other backends find their own function by that name. Orders and other arguments by which there is no
derivative come first. Numbers are attributes; tensors are inputs of another op, `OfOrders`.
"""

from __future__ import annotations

from numbers import Real
from typing import ClassVar

from ...base.errors import GradientError
from ...base.lazy import lazy_module
from ...ir.onnx import NoOnnxForm
from ...ir.types import broadcast
from ..base import (
    NO_GRAD,
    ZERO,
    Any,
    DTypeError,
    Gradients,
    GraphGradError,
    Node,
    Op,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    apply,
    as_tensor,
    cast,
    is_inexact,
    kind_of,
    np,
    promoted,
    tensor_type,
)
from ..families import RealBinary, RealUnary, floating_unary
from ..sources import UndefinedGradient

__all__ = [
    "OfOrders",
    "OfScipy",
    "Ordered",
    "ScipyBinary",
    "ScipyUnary",
    "is_order",
    "need_scipy",
    "of_either",
    "of_integers",
    "scipy_special",
    "with_orders",
]

scipy_special: Any = lazy_module("scipy.special")


def need_scipy(what: str) -> Any:
    """The module scipy.special; GraphGradError without SciPy."""
    if scipy_special is None:
        raise GraphGradError(f"{what} needs SciPy: pip install 'graphgrad[scipy]'")
    return scipy_special


class OfScipy(RealUnary, abstract=True):
    """Family: a function of SciPy, element by element, in the dtype of the operands.

    Raises: DTypeError if x is complex; GraphGradError without SciPy (the extra `scipy`).
    """

    scipy = ""

    def kernel(self, xp: Any, *arrays: Any) -> Any:
        fn = getattr(need_scipy(self.scipy), self.scipy)
        return np.asarray(fn(*self.attrs.values(), *arrays)).astype(arrays[0].dtype)

    def to_onnx(self, to: Any, *xs: Any) -> Any:
        return to.in_double(self.formula, *xs)

    def formula(self, *_: Any) -> Any:
        """formula(xp, *tensors): the function made of elementary ones, in float64."""
        raise NoOnnxForm(f"{self.type} has no form in ONNX: its kernel needs SciPy")


class ScipyUnary(OfScipy, abstract=True):
    """Family: of one operand."""

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for op in cls.examples() if scipy_special else ():
            yield op, [rng.uniform(*cls.domain, size=(2, 3))]
            yield op, [rng.uniform(*cls.domain, size=(2,)).astype("float32")]

    @classmethod
    def examples(cls) -> Any:
        """Ops of this type."""
        return (cls(),)


class ScipyBinary(OfScipy, RealBinary, abstract=True):
    """Family: of two operands.

    Parameters:
        x, y: shapes that broadcast; floating, dtypes promoted, ints and bools become float64.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands;
        GraphGradError without SciPy (the extra `scipy`).
    """

    domain = (0.5, 2.0)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shapes in (((2, 3), (3,)), ((), (2,))) if scipy_special else ():
            yield cls(), [rng.uniform(*cls.domain, size=s) for s in shapes]


def of_either(real: Op, complex: Op, x: TensorLike) -> Tensor:
    """One op of real x, another, which needs SciPy, of complex x."""
    x = as_tensor(x)
    if kind_of(x.dtype) != "c":
        return floating_unary(real, x)
    need_scipy(f"{real.type} of complex numbers")
    return apply(complex, x)


# --- orders --------------------------------------------------------------------------------------


class Ordered(ScipyUnary, abstract=True):
    """Family: of one operand, and of orders that are numbers: the attributes."""

    to_onnx = OfScipy.to_onnx

    @classmethod
    def function(cls, *args: Any) -> Any:
        """The function of NumPy's arrays."""
        return getattr(need_scipy(cls.scipy), cls.scipy)(*args)

    @classmethod
    def slope(cls, *args: Any) -> Tensor:
        """slope(*orders, x): the derivative by x; orders are numbers or tensors."""
        raise NotImplementedError(cls.type)

    def kernel(self, xp: Any, *arrays: Any) -> Any:
        x = arrays[-1]
        return np.asarray(self.function(*self.attrs.values(), x)).astype(x.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy * self.slope(*self.attrs.values(), *node.inputs),)


class OfOrders(OfScipy, abstract=True):
    """Family: the same function of orders that are tensors, real or integers; x comes last."""

    of: ClassVar[type[Ordered]]

    def infer(self, *types: TensorType) -> Types:
        x = types[-1]
        self.check(x.dtype)
        for t in types[:-1]:
            if kind_of(t.dtype) not in "iuf":
                raise DTypeError(f"{self.type} takes orders that are real, got {t!r}")
        return (tensor_type(broadcast([t.shape for t in types]), x.dtype),)

    def kernel(self, xp: Any, *arrays: Any) -> Any:
        return np.asarray(self.of.function(*arrays)).astype(arrays[-1].dtype)

    def to_onnx(self, to: Any, *xs: Any) -> Any:
        *orders, x = xs  # whose dtype the result has
        return to.in_double(lambda xp, x, *orders: self.formula(xp, *orders, x), x, *orders)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        """OrderOf says that there is none by an order."""
        orders = [ZERO if is_inexact(t.dtype) else NO_GRAD for t in node.inputs[:-1]]
        return *orders, dy * cast(self.slope(*node.inputs), node.outputs[0].dtype)

    def slope(self, *inputs: Tensor) -> Tensor:
        """The derivative by x."""
        return self.of.slope(*inputs)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        count = len(cls.of.fields) - len(cls.fields)
        for shape in ((3,), (2, 3)) if scipy_special else ():
            orders = [2 + i + rng.integers(0, 2, size=(3,)) for i in range(count)]
            yield cls(*cls._defaults.values()), [*orders, rng.uniform(*cls.of.domain, size=shape)]


class OrderOf(UndefinedGradient):
    """y = x, an order of a function. Gradient: an error where one by the order is needed."""

    function: str
    name: str

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        raise GradientError(
            f"{self.function} has no gradient with respect to {self.name}, which is needed here: "
            f"{node.inputs[0].type!r}, built at {node.inputs[0].where}, read at {node.where}. Use "
            f"gg.stop_gradient({self.name}) if it counts as a constant."
        )

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls("jv", "v"), [rng.integers(0, 3, size=(3,))]


def with_orders(
    function: str, op: type[Ordered], by: type[OfOrders], x: TensorLike, /, **orders: Any
) -> Tensor:
    """op of x, with orders that are numbers, or `by` of tensors."""
    if all(isinstance(n, Real | np.number) and not isinstance(n, bool) for n in orders.values()):
        return floating_unary(op(*[float(n) for n in orders.values()]), x)
    weak = {n: t for n, t in orders.items() if not _counts(function, n, t)}
    *floats, x = promoted(*weak.values(), x, floating=True)
    marked = [apply(OrderOf(function, n), t) for n, t in zip(weak, floats, strict=True)]
    known = dict(zip(weak, marked, strict=True))
    every = [known[n] if n in known else cast(t, "int64") for n, t in orders.items()]
    return apply(by(*by._defaults.values()), *every, x)


def is_order(n: Any) -> bool:
    """Whether an order is not a number, but a tensor or an array."""
    return isinstance(n, Tensor | list | tuple) or np.ndim(n) > 0


def of_integers(function: str, op: OfOrders, n: TensorLike, x: TensorLike) -> Tensor:
    """op of orders that are integers; DTypeError for others."""
    n = as_tensor(n)
    if kind_of(n.dtype) not in "iu":
        raise DTypeError(f"{function} takes integers as n, got {n.type!r}; use gg.cast")
    return apply(op, cast(n, "int64"), *promoted(x, floating=True))


def _counts(function: str, name: str, t: Any) -> bool:
    """Whether an order is of integers; DTypeError unless it is real."""
    if isinstance(t, Real) and not isinstance(t, bool):
        return False
    kind = kind_of(as_tensor(t).dtype)
    if kind not in "iuf":
        raise DTypeError(f"{function} takes real numbers as {name}, got {as_tensor(t).type!r}")
    return kind in "iu"
