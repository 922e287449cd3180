"""Operators that the caller of `load` says the meaning of: a function of tensors, or a derivative
of what stays in the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from ...base.errors import FileError, did_you_mean
from ...ir.build import build
from ...ir.node import Tensor
from ...ir.types import TensorType, tensor_type
from ...ops.foreign.onnx_operator import OnnxOperator
from ..package import onnx
from .call import OperatorCall
from .forms import Form
from .survey import full_name
from .tensors import dtype_of, length_of

__all__ = ["OwnForms", "check_own"]


class OwnForms:
    """The forms that were given, by the names of operators with their domains.

    forms   {name: function of tensors, attributes by name}
    opaque  {name: vjp}
    lengths of the inputs, by the names that the file gives them
    """

    def __init__(self, forms: Mapping[str, Any], opaque: Mapping[str, Any]) -> None:
        self._read: dict[str, Callable[..., Any]] = {n: partial(_made, f) for n, f in forms.items()}
        self._read.update((n, partial(self._kept, rule)) for n, rule in opaque.items())
        self._said: dict[str, Any] = {}
        self.lengths: dict[str, Any] = {}

    @property
    def names(self) -> frozenset[str]:
        """The operators."""
        return frozenset(self._read)

    def of(self, domain: str, name: str) -> Form | None:
        """How an operator is read; None where nothing was given."""
        read = self._read.get(full_name(domain, name))
        return None if read is None else Form(read, folded=False)

    def hear(self, graph: Any) -> None:
        """Take in what a graph of the file says of its values."""
        self._said.update((each.name, each) for each in (*graph.value_info, *graph.output))

    def _kept(self, rule: Callable[..., Any], call: OperatorCall) -> Any:
        attributes = dict(call.attributes)
        for name, value in attributes.items():
            if isinstance(value, onnx.GraphProto):
                raise FileError(f"its attribute {name!r:.80} is a graph, so it is not opaque")
        last = max((i for i, there in enumerate(call.wanted) if there), default=-1)
        types = tuple([self._type(name) for name in call.node.output[: last + 1]])
        given = tuple([call.given(i) for i in range(len(call.values))])
        op = OnnxOperator(call.type, call.node.domain, call.opset, attributes, given, types, rule)
        return build(op, tuple([call.tensor(i) for i, there in enumerate(given) if there])).outputs

    def _type(self, name: str) -> TensorType:
        """What the file says of a value."""
        said = self._said.get(name)
        kind = None if said is None else said.type.tensor_type
        if kind is None or not kind.HasField("shape"):
            raise FileError(
                "it is opaque, and the file does not declare the type of its output "
                f"{name!r:.80}: add it to the value_info of the graph"
            )
        dims = [self._length(dim) for dim in kind.shape.dim]
        return tensor_type(tuple(dims), dtype_of(kind.elem_type, f"the value {name!r:.80}"))

    def _length(self, dim: Any) -> Any:
        """A length: that of the inputs under its name, None where none of them has it."""
        length = length_of(dim)
        return self.lengths.get(length) if isinstance(length, str) else length


def _made(function: Callable[..., Any], call: OperatorCall) -> Any:
    returned = function(*call.inputs, **call.attributes)
    made = returned if isinstance(returned, tuple | list) else (returned,)
    if not all(y is None or isinstance(y, Tensor) for y in made):
        raise FileError(f"the function that forms= gives returned {returned!r:.200}, not tensors")
    return made


def check_own(options: Mapping[str, Mapping[str, Any]], there: Iterable[str]) -> None:
    """FileError for operators that the file does not have, for input that is not a function, and
    for both a form and a vjp of one operator.
    """
    names, seen = list(there), dict[str, str]()
    for option, given in options.items():
        for name, function in given.items():
            if name not in names:
                near = did_you_mean(str(name), names, f"It has {', '.join(names) or 'none'}.")
                raise FileError(f"{option}: it has no operator {name!r:.80}. {near}".rstrip())
            if not callable(function):
                raise FileError(f"{option}: {name!r:.80} has a function, got {function!r:.80}")
            if name in seen:
                raise FileError(f"{name!r:.80} is in both {seen[name]}= and {option}=")
            seen[name] = option
