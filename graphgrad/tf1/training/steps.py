"""The variable that counts the steps of training."""

from __future__ import annotations

from typing import Any

from ..graph import GraphKeys, get_default_graph
from ..initializers import zeros_initializer
from ..variable_scope import get_variable
from ..variables import Variable

__all__ = [
    "assert_global_step", "create_global_step", "get_global_step", "get_or_create_global_step",
    "global_step",
]  # fmt: skip


def get_global_step(graph: Any = None) -> Any:
    """The variable that counts steps, or None."""
    graph = graph or get_default_graph()
    found = graph.get_collection(GraphKeys.GLOBAL_STEP)
    if len(found) == 1:
        return found[0]
    named = [v for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES) if
             v.name == "global_step:0"]  # fmt: skip
    return named[0] if named else None


def create_global_step(graph: Any = None) -> Any:
    """A new variable that counts steps. Raises ValueError where there is one."""
    graph = graph or get_default_graph()
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    with graph.as_default(), graph.name_scope(None):
        return get_variable(
            "global_step", [], "int64", zeros_initializer(), trainable=False,
            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
        )  # fmt: skip


def get_or_create_global_step(graph: Any = None) -> Any:
    """The variable that counts steps, which is made where there is none."""
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """Its value in a session."""
    return int(sess.run(global_step_tensor))


def assert_global_step(global_step_tensor: Any) -> None:
    """Raises TypeError for what cannot count steps."""
    if not isinstance(global_step_tensor, Variable) and not hasattr(global_step_tensor, "dtype"):
        raise TypeError('Existing "global_step" must be a Variable or Tensor.')
    if not global_step_tensor.dtype.base_dtype.is_integer:
        raise TypeError('Existing "global_step" does not have integer type')
