"""Moving averages of variables."""

from __future__ import annotations

from typing import Any

from ..control_flow import group
from ..create import apply, constant, convert_to_tensor, name_scope
from ..graph import GraphKeys, Tensor, get_default_graph
from ..initializers import zeros_initializer
from ..ops import math as M
from ..scope import changed
from ..variable_scope import get_variable, variable_scope
from ..variables import Variable, assign, assign_sub, moving_average_variables, trainable_variables
from . import slots

__all__ = ["ExponentialMovingAverage", "assign_moving_average", "weighted_moving_average"]


def assign_moving_average(
    variable: Any, value: Any, decay: Any, zero_debias: bool = True, name: Any = None
) -> Any:
    """variable -= (1 - decay) (variable - value), corrected for its start at zero by default."""
    with name_scope(name, "AssignMovingAvg", [variable, value, decay]) as scope:
        kind = variable.dtype.base_dtype
        rest = M.subtract(constant(1.0, kind), convert_to_tensor(decay, kind), name="sub")
        value = convert_to_tensor(value, kind)
        if not zero_debias:
            delta = M.multiply(M.subtract(variable.value(), value, name="sub"), rest, name="mul")
            return assign_sub(variable, delta, name=scope)
        return _debiased(variable, value, rest)


def _debiased(variable: Any, value: Any, rest: Any) -> Any:
    """A mean that started at zero, divided by the share of it that is not the start."""
    with changed(variable.graph, prefix=""), variable_scope(variable.op.name):
        biased = get_variable("biased", variable.get_shape(), variable.dtype.base_dtype,
                              zeros_initializer(), trainable=False)  # fmt: skip
        local = get_variable("local_step", [], variable.dtype.base_dtype, zeros_initializer(),
                             trainable=False)  # fmt: skip
    moved = assign_sub(biased, M.multiply(M.subtract(biased.value(), value), rest))
    count = local.assign_add(constant(1.0, variable.dtype.base_dtype))
    share = M.subtract(1.0, M.pow(M.subtract(1.0, rest), apply("Identity", count)))
    return assign(variable, M.truediv(apply("Identity", moved), share))


def weighted_moving_average(
    value: Any, decay: Any, weight: Any, truediv: bool = True, collections: Any = None,
    name: Any = None,
) -> Tensor:  # fmt: skip
    """The moving average of value weight, over that of weight."""
    keys = [GraphKeys.GLOBAL_VARIABLES] if collections is None else collections
    with variable_scope(name, "WeightedMovingAvg", [value, weight, decay]):
        value, weight = convert_to_tensor(value), convert_to_tensor(weight)
        parts = []
        for label, x in (("value_x_weight", M.multiply(value, weight)), ("weight", weight)):
            held = get_variable(label, x.shape, x.dtype.base_dtype, zeros_initializer(),
                                trainable=False, collections=keys)  # fmt: skip
            parts.append(assign_moving_average(held, x, decay, zero_debias=False))
        return M.truediv(apply("Identity", parts[0]), apply("Identity", parts[1]))


class ExponentialMovingAverage:
    """Averages of variables: each step shadow -= (1 - decay) (shadow - variable)."""

    def __init__(
        self,
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay, self._num_updates = decay, num_updates
        self._zero_debias, self._name = zero_debias, name
        self._averages: dict[Any, Any] = {}

    @property
    def name(self) -> str:
        """The name of its variables."""
        return self._name

    def apply(self, var_list: Any = None) -> Any:
        """An op that moves the averages of variables or tensors."""
        chosen = trainable_variables() if var_list is None else list(var_list)
        debiased = set()
        for v in chosen:
            if not v.dtype.base_dtype.is_floating:
                raise TypeError(f"The variables must be half, float, or double: {v.name}")
            if v in self._averages:
                continue
            with changed(get_default_graph(), controls=()):
                if isinstance(v, Variable):
                    made = slots.create_slot(v, v.initialized_value(), self._name)
                else:
                    made = slots.create_zeros_slot(v, self._name)
                    if self._zero_debias:
                        debiased.add(v)
            self._averages[v] = made
            graph = get_default_graph()
            if isinstance(v, Variable):
                graph.add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, v)
        with name_scope(self._name) as scope:
            decay = convert_to_tensor(self._decay, "float32", name="decay")
            if self._num_updates is not None:
                n = M.cast(self._num_updates, "float32", name="num_updates")
                share = M.truediv(M.add(1.0, n), M.add(10.0, n))
                decay = M.minimum(decay, share)
            updates = [
                assign_moving_average(
                    self._averages[v], v, M.cast(decay, v.dtype.base_dtype), v in debiased
                )
                for v in chosen
            ]
            return group(*updates, name=scope)

    def average(self, var: Any) -> Any:
        """The variable that holds the average, or None."""
        return self._averages.get(var)

    def average_name(self, var: Any) -> str:
        """The name of the variable that holds the average."""
        if var in self._averages:
            return self._averages[var].op.name
        return f"{var.op.name}/{self._name}"

    def variables_to_restore(self, moving_avg_variables: Any = None) -> dict[str, Any]:
        """{name in a file: variable}, so that variables take their averages."""
        graph = get_default_graph()
        moved = moving_avg_variables
        if moved is None:
            moved = [*trainable_variables(), *moving_average_variables()]
        moved = dict.fromkeys(moved)
        found = {self.average_name(v): v for v in moved}
        for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES):
            if v not in moved and v.op.name not in found:
                found[v.op.name] = v
        return found
