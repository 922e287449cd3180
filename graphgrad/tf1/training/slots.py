"""Variables that optimizers and averages keep next to others."""

from __future__ import annotations

from typing import Any

from ..create import convert_to_tensor
from ..initializers import zeros_initializer
from ..variable_scope import get_variable, variable_scope

__all__ = ["create_slot", "create_slot_with_initializer", "create_zeros_slot"]


def create_slot(primary: Any, val: Any, name: str, colocate_with_primary: bool = True) -> Any:
    """A variable that starts with a value."""
    with variable_scope(None, f"{primary.op.name}/{name}"):
        return _slot(val, None, primary)


def create_slot_with_initializer(
    primary: Any,
    initializer: Any,
    shape: Any,
    dtype: Any,
    name: str,
    colocate_with_primary: bool = True,
) -> Any:
    """A variable that starts with what an initializer makes."""
    with variable_scope(None, f"{primary.op.name}/{name}"):
        return _slot(initializer, shape, primary, dtype)


def create_zeros_slot(
    primary: Any, name: str, dtype: Any = None, colocate_with_primary: bool = True
) -> Any:
    """A variable of zeros, of the shape of another."""
    kind = primary.dtype.base_dtype if dtype is None else dtype
    return create_slot_with_initializer(
        primary, zeros_initializer(), primary.get_shape(), kind, name
    )


def _slot(value: Any, shape: Any, primary: Any, dtype: Any = None) -> Any:
    if not callable(value):
        value = convert_to_tensor(value)
        dtype = value.dtype
    kind = getattr(dtype, "base_dtype", dtype)
    return get_variable("", initializer=value, trainable=False, shape=shape, dtype=kind,
                        use_resource=False)  # fmt: skip
