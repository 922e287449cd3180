"""Blocks as protocol buffers of ONNX."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...base.length import Length
from ...base.version import __version__
from ...ir.onnx import NoOnnxForm
from ...ir.types import Array, DType, Shape
from ..package import onnx, onnx_helper, onnx_numpy
from .values import OnnxBlock, OnnxCall, OnnxValue

__all__ = [
    "IR",
    "OPSET",
    "BesideWriter",
    "ExternalPlace",
    "ExternalWeights",
    "check_dtype",
    "made_model",
    "put_metadata",
]

OPSET = 21
IR = 10

BESIDE = 1024
"""Bytes; smaller arrays stay in the model."""

FOUR_BITS = (21, 22)
"""ONNX's numbers of UINT4 and INT4."""

ALIGNED = 4096
"""Arrays beside the model begin at multiples of this, so that they can be mapped."""


def check_dtype(dtype: DType) -> None:
    """NoOnnxForm for a dtype that operators of ONNX do not compute with."""
    if dtype.kind == "c":
        raise NoOnnxForm("ONNX has no operators for complex numbers")


def enum_of(dtype: DType) -> int:
    """ONNX's number of a dtype."""
    number: int = onnx_helper.np_dtype_to_tensor_dtype(dtype)
    return number


def made_model(
    name: str,
    block: OnnxBlock,
    initial: Mapping[str, Array],
    functions: Mapping[tuple[str, str], OnnxBlock],
    metadata: Mapping[str, str],
    beside: ExternalWeights | None,
) -> Any:
    """The ModelProto. initial: arrays by name, of inputs and of others."""
    arrays = {**initial, **block.constants}
    tensors = [_tensor(n, a, beside) for n, a in arrays.items()]
    versions = {domain: 1 for domain, _ in functions}
    for body in (block, *functions.values()):
        versions.update(_domains(body))
    versions[""] = OPSET
    opsets = [onnx_helper.make_opsetid(*row) for row in sorted(versions.items())]
    beside_calls = {*arrays, *[r.name for r in block.results]}
    known = [v for v in block.typed if v.name not in beside_calls]
    graph = onnx_helper.make_graph(
        [_node(call) for call in block.calls],
        name,
        [_info(v) for v in block.given],
        [_info(v) for v in block.results],
        tensors,
        value_info=[_info(v) for v in known],
    )
    protos = [_function(*key, body, opsets) for key, body in functions.items()]
    model = onnx_helper.make_model(
        graph,
        opset_imports=opsets,
        functions=protos,
        ir_version=IR,
        producer_name="graphgrad",
        producer_version=__version__,
    )
    put_metadata(model, metadata)
    return model


class ExternalPlace(NamedTuple):
    """Where an array lies: a file in the folder of the model, the first byte, how many."""

    location: str
    offset: int
    length: int


class ExternalWeights(Protocol):
    """What says of arrays where they lie outside of the model."""

    def take(self, array: Array) -> ExternalPlace | None:
        """The place; None for an array that is inside."""


class BesideWriter:
    """Arrays that go into a file beside the model, one after the other."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.arrays: list[tuple[int, Array]] = []
        self.end = 0

    def take(self, array: Array) -> ExternalPlace | None:
        """Where it begins, and how many bytes it has; None for a small one."""
        if array.nbytes < BESIDE:
            return None
        start = -(-self.end // ALIGNED) * ALIGNED
        self.arrays.append((start, array))
        self.end = start + array.nbytes
        return ExternalPlace(self.name, start, array.nbytes)

    def write(self, file: Any) -> None:
        """All of them, in ONNX's order of bytes."""
        at = 0
        for start, array in self.arrays:
            file.write(bytes(start - at))
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            file.write(np.ascontiguousarray(little).data.cast("B") if array.size else b"")
            at = start + array.nbytes


def _tensor(name: str, array: Array, beside: ExternalWeights | None) -> Any:
    place = None if beside is None else beside.take(_packed(array))
    if place is None:
        return onnx_numpy.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
    proto = onnx.TensorProto(name=name, data_type=enum_of(array.dtype), dims=array.shape)
    proto.data_location = onnx.TensorProto.EXTERNAL
    for key, value in place._asdict().items():
        proto.external_data.add(key=key, value=str(value))
    return proto


def _packed(array: Array) -> Array:
    """The array, or bytes of two elements each if its dtype has four bits."""
    if enum_of(array.dtype) not in FOUR_BITS:
        return array
    return np.frombuffer(onnx_numpy.from_array(array).raw_data, "uint8")


def _function(domain: str, name: str, body: OnnxBlock, opsets: Sequence[Any]) -> Any:
    constants = [_constant(n, a) for n, a in body.constants.items()]
    used = {domain for domain, _ in _domains(body)}
    proto = onnx_helper.make_function(
        domain,
        name,
        [v.name for v in body.given],
        [v.name for v in body.results],
        [*constants, *map(_node, body.calls)],
        [o for o in opsets if o.domain in {"", *used}],
    )
    put_metadata(proto, body.metadata)
    return proto


def _domains(body: OnnxBlock) -> Iterable[tuple[str, int]]:
    """The domains of the calls in a block, with their versions."""
    for call in body.calls:
        yield call.domain, call.version
        for inner in call.attributes.values():
            if isinstance(inner, OnnxBlock):
                yield from _domains(inner)


def _constant(name: str, array: Array) -> Any:
    return onnx_helper.make_node("Constant", [], [name], value=onnx_numpy.from_array(array))


def _node(call: OnnxCall) -> Any:
    attributes = {k: _attribute(v) for k, v in call.attributes.items()}
    node = onnx_helper.make_node(
        call.operator, call.inputs, call.outputs, call.outputs[0], domain=call.domain
    )
    node.attribute.extend(
        onnx_helper.make_attribute(k, v, attr_type=_list_type(v)) for k, v in attributes.items()
    )
    put_metadata(node, call.metadata)
    return node


def _list_type(value: Any) -> Any:
    """The type of an empty list, which does not show."""
    return onnx.AttributeProto.INTS if isinstance(value, list) and not value else None


def _attribute(value: Any) -> Any:
    if isinstance(value, OnnxBlock):
        return _subgraph(value)
    if isinstance(value, np.dtype):
        return enum_of(value)
    if isinstance(value, np.ndarray):
        return onnx_numpy.from_array(value)
    if isinstance(value, bool):
        return int(value)
    return list(value) if isinstance(value, tuple) else value


def _subgraph(block: OnnxBlock) -> Any:
    return onnx_helper.make_graph(
        [_node(call) for call in block.calls],
        "body",
        [_info(v) for v in block.given],
        [_info(v) for v in block.results],
    )


def _info(value: OnnxValue) -> Any:
    shape: Shape | None = value.shape
    lengths = None
    if shape is not None:
        lengths = [str(d) if isinstance(d, Length) else d for d in shape]
    return onnx_helper.make_tensor_value_info(value.name, enum_of(value.dtype), lengths)


def put_metadata(proto: Any, metadata: Mapping[str, str]) -> None:
    """Keys and values of a model, a function or a node."""
    for key, value in metadata.items():
        proto.metadata_props.add(key=key, value=value)
