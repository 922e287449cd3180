"""Assertions: `tf.assert_equal`, and quantisation in training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .control_flow import no_op
from .create import apply, convert_to_tensor, name_scope
from .errors import InvalidArgumentError
from .function import Assert
from .graph import Operation, Tensor
from .ops import math as M
from .static import constant_value

__all__ = [
    "assert_equal", "assert_greater", "assert_greater_equal", "assert_integer", "assert_less",
    "assert_less_equal", "assert_non_negative", "assert_none_equal", "assert_positive",
    "assert_rank", "assert_rank_at_least", "assert_scalar", "assert_type",
    "fake_quant_with_min_max_args", "fake_quant_with_min_max_vars",
]  # fmt: skip


def _comparison(type: str, label: str) -> Callable[..., Operation]:
    def check(
        x: Any, y: Any, data: Any = None, summarize: Any = None, message: Any = None,
        name: Any = None,
    ) -> Operation:  # fmt: skip
        with name_scope(name, label, [x, y]):
            a = convert_to_tensor(x)
            b = convert_to_tensor(y, a.dtype.base_dtype)
            known = [constant_value(t) for t in (a, b)]
            holds = M.reduce_all(apply(type, a, b))
            if all(k is not None for k in known):
                _now(type, known, message, label)
            return Assert(holds, data or [message or label, a, b], summarize)

    check.__name__ = label
    check.__doc__ = f"An op that raises InvalidArgumentError in a run unless all x are {type} y."
    return check


def _now(type: str, known: list[Any], message: Any, label: str) -> None:
    """Raises InvalidArgumentError where it is known already that it does not hold."""
    ufuncs: dict[str, Callable[..., Any]] = {
        "Equal": lambda a, b: a == b, "NotEqual": lambda a, b: a != b,
        "Less": lambda a, b: a < b, "LessEqual": lambda a, b: a <= b,
        "Greater": lambda a, b: a > b, "GreaterEqual": lambda a, b: a >= b,
    }  # fmt: skip
    if not ufuncs[type](*known).all():
        raise InvalidArgumentError(None, None, f"{message or label}: {known[0]}, {known[1]}")


assert_equal = _comparison("Equal", "assert_equal")
assert_none_equal = _comparison("NotEqual", "assert_none_equal")
assert_less = _comparison("Less", "assert_less")
assert_less_equal = _comparison("LessEqual", "assert_less_equal")
assert_greater = _comparison("Greater", "assert_greater")
assert_greater_equal = _comparison("GreaterEqual", "assert_greater_equal")


def assert_non_negative(x: Any, data: Any = None, **kwargs: Any) -> Operation:
    """An op that raises in a run unless all x are at least zero."""
    x = convert_to_tensor(x)
    return assert_greater_equal(x, apply("ZerosLike", x), data, **kwargs)


def assert_positive(x: Any, data: Any = None, **kwargs: Any) -> Operation:
    """An op that raises in a run unless all x are above zero."""
    x = convert_to_tensor(x)
    return assert_greater(x, apply("ZerosLike", x), data, **kwargs)


def _ranked(x: Any, fits: bool, text: str, name: Any) -> Operation:
    if not fits:
        raise ValueError(f"{x.name} of shape {x.shape}: {text}")
    return no_op(name or "static_checks_determined_all_ok")


def assert_rank(x: Any, rank: int, *_: Any, name: Any = None, **__: Any) -> Operation:
    """Raises ValueError for a tensor of another rank."""
    x = convert_to_tensor(x)
    return _ranked(x, x.shape.ndims in (None, rank), f"must have rank {rank}", name)


def assert_rank_at_least(x: Any, rank: int, *_: Any, name: Any = None, **__: Any) -> Operation:
    """Raises ValueError for a tensor of less rank."""
    x = convert_to_tensor(x)
    fits = x.shape.ndims is None or x.shape.ndims >= rank
    return _ranked(x, fits, f"must have rank at least {rank}", name)


def assert_scalar(tensor: Any, name: Any = None, **_: Any) -> Tensor:
    """Raises ValueError for input that is not a scalar."""
    x = convert_to_tensor(tensor)
    _ranked(x, x.shape.ndims in (None, 0), "must be a scalar", name)
    return x


def assert_type(tensor: Any, tf_type: Any, *_: Any, **__: Any) -> Operation:
    """Raises TypeError for a tensor of another type."""
    x = convert_to_tensor(tensor)
    if x.dtype.base_dtype != tf_type:
        raise TypeError(f"{x.name} must be of type {tf_type!r}")
    return no_op("statically_determined_correct_type")


def assert_integer(x: Any, *_: Any, **__: Any) -> Operation:
    """Raises TypeError for what holds no integers."""
    t = convert_to_tensor(x)
    if not t.dtype.is_integer:
        raise TypeError(f"Expected {t.name} to be an integer, got {t.dtype.name}")
    return no_op("statically_determined_was_integer")


def fake_quant_with_min_max_vars(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: Any = None
) -> Tensor:
    """Clipped and rounded to 2^bits levels between two tensors."""
    return apply("FakeQuantWithMinMaxVars", inputs, min, max, name=name,
                         num_bits=num_bits, narrow_range=narrow_range)  # fmt: skip


def fake_quant_with_min_max_args(
    inputs: Any, min: float = -6, max: float = 6, num_bits: int = 8, narrow_range: bool = False,
    name: Any = None,
) -> Tensor:  # fmt: skip
    """Clipped and rounded to 2^bits levels between two numbers."""
    return apply("FakeQuantWithMinMaxArgs", inputs, name=name, min=float(min),
                         max=float(max), num_bits=num_bits, narrow_range=narrow_range)  # fmt: skip
