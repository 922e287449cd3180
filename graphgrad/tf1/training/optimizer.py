"""The base of optimizers: gradients of a loss, and ops that change variables by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..control_flow import group
from ..create import convert_to_tensor, name_scope
from ..gradients import gradients
from ..graph import GraphKeys, Operation, Tensor, get_default_graph
from ..nest import flatten
from ..scope import changed
from ..variables import Variable, assign_add
from . import slots

__all__ = ["Optimizer"]


class Optimizer:
    """Base class. A subclass writes `_prepare`, `_create_slots` and `_apply_dense`."""

    GATE_NONE = 0
    GATE_OP = 1
    GATE_GRAPH = 2

    def __init__(self, use_locking: bool, name: str, **_: Any) -> None:
        if not name:
            raise ValueError("Must specify the optimizer name")
        self._use_locking = use_locking
        self._name = name
        self._slots: dict[str, dict[Any, Any]] = {}
        self._non_slot_dict: dict[Any, Any] = {}

    def get_name(self) -> str:
        """The name of its ops."""
        return self._name

    def minimize(
        self,
        loss: Any,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        name: Any = None,
        grad_loss: Any = None,
    ) -> Any:
        """An op that changes variables so that the loss becomes less."""
        pairs = self.compute_gradients(
            loss,
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        if not any(g is not None for g, _ in pairs):
            raise ValueError(
                "No gradients provided for any variable, check your graph for ops that do not "
                "support gradients, between variables "
                f"{[str(v) for _, v in pairs]} and loss {loss}."
            )
        return self.apply_gradients(pairs, global_step=global_step, name=name)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Any]]:
        """Pairs of gradient (or None) and variable."""
        if gate_gradients not in (self.GATE_NONE, self.GATE_OP, self.GATE_GRAPH):
            raise ValueError(
                "gate_gradients must be one of: Optimizer.GATE_NONE, Optimizer.GATE_OP, "
                f"Optimizer.GATE_GRAPH, not {gate_gradients}"
            )
        if callable(loss):
            loss = loss()
        loss = convert_to_tensor(loss)
        self._assert_valid_dtypes([loss])
        if var_list is None:
            graph = get_default_graph()
            var_list = graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)
        else:
            var_list = flatten(var_list)
        if not var_list:
            raise ValueError("No variables to optimize.")
        found = gradients(
            loss, var_list, grad_ys=grad_loss, aggregation_method=aggregation_method,
            gate_gradients=gate_gradients == self.GATE_OP,
        )  # fmt: skip
        self._assert_valid_dtypes(
            [v for g, v in zip(found, var_list, strict=True) if g is not None]
        )
        return list(zip(found, var_list, strict=True))

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: Any = None
    ) -> Any:
        """An op that changes variables by gradients. Pairs whose gradient is None are left out."""
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("No variables provided.")
        for g, _ in pairs:
            if g is not None and isinstance(g, str):
                raise TypeError(f"Gradient must be convertible to a Tensor or None: {g!r}")
        there = [(convert_to_tensor(g), v) for g, v in pairs if g is not None]
        if not there:
            raise ValueError(
                f"No gradients provided for any variable: {[str(v) for _, v in pairs]}."
            )
        graph = there[0][1].graph
        with changed(graph, controls=()):
            self._create_slots([v for _, v in there])
        updates: list[Any] = []
        with name_scope(name, self._name, [v for _, v in there]) as scope:
            self._prepare()
            for g, v in there:
                with name_scope("update_" + v.op.name):
                    updates.append(self._updated(g, v))
            if global_step is None:
                done = self._finish(updates, scope)
            else:
                with graph.control_dependencies([self._finish(updates, "update")]):
                    done = assign_add(global_step, 1, name=scope).op
        train_ops = graph.get_collection_ref(GraphKeys.TRAIN_OP)
        if done not in train_ops:
            train_ops.append(done)
        return done

    def _updated(self, g: Tensor, v: Any) -> Any:
        made = self._apply_dense(g, v)
        if getattr(v, "constraint", None) is None:
            return made
        with v.graph.control_dependencies([made]):
            return v.assign(v.constraint(v.read_value()))

    # slots

    def get_slot(self, var: Any, name: str) -> Any:
        """What is kept next to a variable under a name, or None."""
        return self._slots.get(name, {}).get(var)

    def get_slot_names(self) -> list[str]:
        """The names of what is kept next to variables."""
        return sorted(self._slots)

    def variables(self) -> list[Any]:
        """All variables that it keeps."""
        graph = get_default_graph()
        own = [v for (_, g), v in self._non_slot_dict.items() if g is graph]
        kept = [s for named in self._slots.values() for s in named.values()]
        return sorted([*own, *kept], key=lambda v: v.name)

    def _slot_dict(self, slot_name: str) -> dict[Any, Any]:
        return self._slots.setdefault(slot_name, {})

    def _kept(self, var: Any, slot_name: str, make: Callable[..., Any], *args: Any) -> Any:
        """What is kept next to a variable under a name, which is made where there is none."""
        named = self._slot_dict(slot_name)
        if var not in named:
            named[var] = make(var, *args)
        return named[var]

    def _get_or_make_slot(self, var: Any, val: Any, slot_name: str, op_name: str) -> Any:
        return self._kept(var, slot_name, slots.create_slot, val, op_name)

    def _get_or_make_slot_with_initializer(
        self, var: Any, initializer: Any, shape: Any, dtype: Any, slot_name: str, op_name: str
    ) -> Any:
        make = slots.create_slot_with_initializer
        return self._kept(var, slot_name, make, initializer, shape, dtype, op_name)

    def _zeros_slot(self, var: Any, slot_name: str, op_name: str) -> Any:
        return self._kept(var, slot_name, slots.create_zeros_slot, op_name)

    def _create_non_slot_variable(
        self, initial_value: Any, name: str, colocate_with: Any = None
    ) -> Any:
        graph = get_default_graph() if colocate_with is None else colocate_with.graph
        key = (name, graph)
        if key not in self._non_slot_dict:
            self._non_slot_dict[key] = Variable(initial_value, name=name, trainable=False)
        return self._non_slot_dict[key]

    def _get_non_slot_variable(self, name: str, graph: Any = None) -> Any:
        return self._non_slot_dict.get((name, graph or get_default_graph()))

    # what subclasses write

    def _call_if_callable(self, param: Any) -> Any:
        return param() if callable(param) else param

    def _valid_dtypes(self) -> set[str]:
        return {"float16", "float32", "float64"}

    def _assert_valid_dtypes(self, tensors: Any) -> None:
        valid = {getattr(d, "name", d) for d in self._valid_dtypes()}
        for t in tensors:
            if t.dtype.base_dtype.name not in valid:
                raise ValueError(f"Invalid type {t.dtype.name} for {t.name}, expected: "
                                 f"{sorted(valid)}.")  # fmt: skip

    def _create_slots(self, var_list: Any) -> None:
        """Make what is kept next to variables."""

    def _prepare(self) -> None:
        """Make tensors of the parameters."""

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must write _apply_dense(grad, var)")

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        return self._apply_dense(grad, handle)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._apply_dense(grad, var)

    def _finish(self, update_ops: Any, name_scope: str) -> Operation:
        return group(*update_ops, name=name_scope)
