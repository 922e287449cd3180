"""What an op is called in ONNX, and its attributes there."""

from __future__ import annotations

from typing import Any

from ..base.errors import GraphGradError


class NoOnnxForm(Exception):
    """An op has no form in ONNX, for these attributes or inputs, and why."""


class Onnx:
    """The form of an op type in ONNX: the name of the operator, and {attribute there: ours}.

    That is enough where attributes mean the same in both. An op for which they do not has a
    subclass of this with its own two methods. What ONNX takes as inputs are not attributes.

    Parameters:
        name: of the operator.
        **attributes: {attribute there: attribute of the op}, as keywords.
    """

    def __init__(self, name: str, /, **attributes: str) -> None:
        self.name = name
        self.attributes = attributes

    def to_attributes(self, op: Any) -> dict[str, Any]:
        """The attributes there of an op; GraphGradError where one of its own has no form there."""
        missing = set(op.fields).difference(self.attributes.values())
        if missing:
            raise GraphGradError(
                f"{op!r} has attributes without a counterpart in ONNX's {self.name}: "
                f"{', '.join(sorted(missing))}. Give {op.type}.onnx a form for them."
            )
        return {theirs: getattr(op, ours) for theirs, ours in self.attributes.items()}

    def from_attributes(self, op_type: type[Any], attributes: dict[str, Any]) -> Any:
        """The op of this type with attributes given there; GraphGradError for others than these."""
        unknown = set(attributes).difference(self.attributes)
        if unknown:
            raise GraphGradError(
                f"{', '.join(sorted(unknown))} of ONNX's {self.name} has no counterpart in "
                f"{op_type.type}. Give {op_type.type}.onnx a form for it."
            )
        pairs = ((self.attributes[name], value) for name, value in attributes.items())
        return op_type(**{name: tuple(v) if isinstance(v, list) else v for name, v in pairs})

    def __repr__(self) -> str:
        shown = [repr(self.name), *(f"{a}={b!r}" for a, b in self.attributes.items())]
        return f"Onnx({', '.join(shown)})"
