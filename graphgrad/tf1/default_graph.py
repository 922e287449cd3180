"""What programs do with the default graph, and switches that are as they are."""

from __future__ import annotations

from typing import Any

from .create import name_scope
from .graph import Tensor, get_default_graph

__all__ = [
    "add_to_collection", "add_to_collections", "disable_control_flow_v2",
    "disable_eager_execution", "disable_resource_variables", "disable_v2_behavior",
    "disable_v2_tensorshape", "enable_v2_behavior", "executing_eagerly", "finalize",
    "get_collection", "get_collection_ref", "is_tensor", "op_scope",
]  # fmt: skip


def add_to_collection(name: Any, value: Any) -> None:
    """Put a value into a collection of the default graph."""
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names: Any, value: Any) -> None:
    """Put a value into several collections of the default graph."""
    get_default_graph().add_to_collections(names, value)


def get_collection(key: Any, scope: Any = None) -> Any:
    """A copy of a collection of the default graph."""
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key: Any) -> Any:
    """A collection of the default graph."""
    return get_default_graph().get_collection_ref(key)


def finalize() -> None:
    """Nothing can be added to the default graph any more."""
    get_default_graph().finalize()


def op_scope(values: Any, name: Any, default_name: Any = None) -> Any:
    """`name_scope`, with the arguments of TensorFlow 0.x."""
    return name_scope(name, default_name, values)


def is_tensor(x: Any) -> Any:
    """Whether this is a tensor or variable."""
    return isinstance(x, Tensor) or hasattr(x, "_tensor_of")


def executing_eagerly() -> Any:
    """False: a graph is built."""
    return False


def _nothing(*_: Any, **__: Any) -> None:
    """Nothing: this is how it is anyway."""


disable_v2_behavior = disable_eager_execution = disable_v2_tensorshape = _nothing
disable_resource_variables = disable_control_flow_v2 = enable_v2_behavior = _nothing
