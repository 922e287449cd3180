"""Families of ops that are a function of SciPy, which have its name as `scipy`.

Other backends find their own function by that name. Orders and other arguments by which there is no
derivative are attributes, and come first.
"""

from __future__ import annotations

from numbers import Real

from ...ir.lazy import lazy_module
from ...ir.onnx import NoOnnxForm
from ..base import Any, DTypeError, GraphGradError, Samples, np
from ..families import RealBinary, RealUnary

__all__ = [
    "OfScipy",
    "ScipyBinary",
    "ScipyUnary",
    "need_scipy",
    "scipy_special",
    "without_gradient",
]

scipy_special: Any = lazy_module("scipy.special")


def need_scipy(what: str) -> Any:
    """The module scipy.special; GraphGradError without SciPy."""
    if scipy_special is None:
        raise GraphGradError(f"{what} needs SciPy: pip install 'graphgrad[scipy]'")
    return scipy_special


def without_gradient(function: str, **numbers: Any) -> tuple[float, ...]:
    """Arguments that have to be numbers, since there is no derivative by them."""
    for name, number in numbers.items():
        if not isinstance(number, Real | np.number) or isinstance(number, bool):
            raise DTypeError(
                f"{function} has no gradient with respect to {name}, which has to be a number: "
                f"got {number!r}"
            )
    return tuple([float(n) for n in numbers.values()])


class OfScipy(RealUnary, abstract=True):
    """Family: a function of SciPy, element by element, in the dtype of the operands."""

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
    """Family: of two operands."""

    domain = (0.5, 2.0)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shapes in (((2, 3), (3,)), ((), (2,))) if scipy_special else ():
            yield cls(), [rng.uniform(*cls.domain, size=s) for s in shapes]
