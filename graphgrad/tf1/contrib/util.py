"""`tf.contrib.util`."""

from __future__ import annotations

from typing import Any

from ..create import numpy_value
from ..dtypes import as_dtype
from ..static import constant_value

__all__ = ["constant_value", "make_ndarray", "make_tensor_proto"]


def make_tensor_proto(values: Any, dtype: Any = None, shape: Any = None) -> Any:
    """An array of the values."""
    array = numpy_value(values, None if dtype is None else as_dtype(dtype))
    return array if shape is None else array.reshape(shape)


def make_ndarray(tensor: Any) -> Any:
    """The array itself."""
    return tensor
