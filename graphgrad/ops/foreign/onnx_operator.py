"""An opaque ONNX operator, which only a runtime that implements it can compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...base.errors import ExecutionError, GradientError
from ...ir.node import Node, Tensor
from ...ir.op import Gradients, Op, Types
from ...ir.types import TensorType

__all__ = ["OnnxOperator"]


class OnnxOperator(Op, interned=False):
    """What an operator of a domain of its own makes of tensors.

    operator, namespace, version   its name, its domain, and the version of that
    attributes  {name: number, text, list of these, or array}
    given       for each of its inputs, whether it is there
    out_types   what it makes
    rule        rule(node, *dys, **attributes) builds the gradients of the inputs

    Gradient: that of the rule.
    """

    operator: str
    namespace: str
    version: int
    attributes: Mapping[str, Any]
    given: tuple[bool, ...]
    out_types: tuple[TensorType, ...]
    rule: Callable[..., Any]

    @property
    def label(self) -> str:
        """The operator with its domain."""
        return f"{self.namespace}.{self.operator}" if self.namespace else self.operator

    def infer(self, *types: TensorType) -> Types:
        return self.out_types

    def kernel(self, xp: Any, *arrays: Any) -> Any:
        raise ExecutionError(
            f"{self.label} is opaque: only an ONNX runtime that knows it can compute it. Write "
            "the model and run it there, or load it with forms={name: function of tensors}"
        )

    def vjp(self, node: Node, *dys: Tensor) -> Gradients:
        try:
            dxs = self.rule(node, *dys, **self.attributes)
        except TypeError as error:
            error.add_note(f"of opaque={{{self.label!r}: {self.rule!r}}}, at {node.where}")
            raise
        dxs = dxs if isinstance(dxs, tuple | list) else (dxs,)
        if len(dxs) != len(node.inputs):
            raise GradientError(
                f"the vjp of {self.label} returned {len(dxs)} gradients for {len(node.inputs)} "
                "inputs"
            )
        return dxs

    def to_onnx(self, to: Any, *xs: Any) -> Any:
        inputs = iter(xs)
        values = [next(inputs) if there else None for there in self.given]
        types = [(t.dtype, t.shape) for t in self.out_types]
        return to.put(self.operator, values, self.attributes, types, self.namespace, self.version)

    def __repr__(self) -> str:
        return f"OnnxOperator({self.label})"
