"""Tensors that are written and read part by part in loops."""

from __future__ import annotations

from typing import Any

import graphgrad as gg

from .create import apply, convert_to_tensor, name_scope
from .definition import define
from .dtypes import as_dtype
from .graph import Tensor
from .registry import RegisterGradient
from .shapes import TensorShape, as_shape, unknown_shape

__all__ = ["TensorArray"]

# What holds the parts is an ordinary tensor [size, *shape of a part], the flow; of one that nothing
# was written to, and whose parts have no known shape, it is [size, 0].


@define("TensorArrayV3", "size:int32", infer=lambda i, a: unknown_shape(),
        types=lambda i, a: [a["dtype"]])  # fmt: skip
def _new(trace: Any, op: Any, size: Any) -> Any:
    n = int(trace.value(op.inputs[0]))
    shape = op.attrs["element_shape"]
    parts = tuple(shape.as_list()) if shape.is_fully_defined() else (0,)
    return gg.zeros((n, *parts), op.attrs["dtype"].numpy)


@define("TensorArrayWriteV3", "flow_in:A index:int32 value:A", infer=lambda i, a: i[0]._shape)
def _write(trace: Any, op: Any, flow: Any, index: Any, value: Any) -> Any:
    n, parts = flow.shape[0], tuple(value.shape)
    if tuple(flow.shape[1:]) != parts:
        if tuple(flow.shape[1:]) != (0,):
            raise ValueError(
                f"TensorArray has parts of shape {tuple(flow.shape[1:])}, what is written has "
                f"{parts}"
            )
        flow = gg.zeros((n, *parts), value.dtype)
    if op.attrs["dynamic_size"]:
        at = int(trace.value(op.inputs[1]))
        if at >= n:
            more = gg.zeros((at + 1 - n, *parts), value.dtype)
            flow = gg.concat([flow, more], axis=0)
    index = gg.cast(index, "int64")
    starts = [index, *[gg.constant(0, "int64")] * len(parts)]
    return gg.dynamic_update_slice(flow, gg.expand_dims(value, 0), starts)


@define("TensorArrayReadV3", "flow_in:A index:int32")
def _read(trace: Any, op: Any, flow: Any, index: Any) -> Any:
    return gg.take(flow, index, axis=0)


define("TensorArrayGatherV3", "flow_in:A", infer=lambda i, a: i[0]._shape,
       lower=lambda t, op, flow: flow)  # fmt: skip
define("TensorArrayScatterV3", "value:A", infer=lambda i, a: i[0]._shape,
       lower=lambda t, op, value: value)  # fmt: skip


@RegisterGradient("TensorArrayGatherV3")
@RegisterGradient("TensorArrayScatterV3")
def _AllGrad(op: Any, dy: Tensor) -> Tensor:
    """dy: a TensorArray is what it holds."""
    return dy


define("TensorArraySizeV3", "flow_in:A", dtype="int32", infer=lambda i, a: TensorShape(()),
       lower=lambda t, op, flow: gg.constant(flow.shape[0], "int32"))  # fmt: skip


@RegisterGradient("TensorArrayWriteV3")
def _WriteGrad(op: Any, dy: Tensor) -> list[Any]:
    """dy of the part that was written, and dy without it."""
    index = op.inputs[1]
    part = apply("TensorArrayReadV3", dy, index)
    zeros = apply("ZerosLike", part, name="zeros_like")
    rest = apply("TensorArrayWriteV3", dy, index, zeros, dynamic_size=False)
    return [rest, None, part]


@RegisterGradient("TensorArrayReadV3")
def _ReadGrad(op: Any, dy: Tensor) -> list[Any]:
    """dy at the part that was read, zeros elsewhere."""
    zeros = apply("ZerosLike", op.inputs[0], name="zeros_like")
    return [apply("TensorArrayWriteV3", zeros, op.inputs[1], dy, dynamic_size=False), None]


class TensorArray:
    """Parts of one shape, written and read by number. Each write gives another TensorArray."""

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: Any = None,
        tensor_array_name: Any = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        self.dtype = as_dtype(dtype).base_dtype
        self._dynamic = bool(dynamic_size)
        self._infer = infer_shape
        self._element = [as_shape(element_shape)]
        if flow is None:
            with name_scope(name, "TensorArray"):
                flow = apply("TensorArrayV3", 0 if size is None else size, dtype=self.dtype,
                             element_shape=self._element[0])  # fmt: skip
        self._flow: Tensor = flow

    @property
    def flow(self) -> Tensor:
        """The tensor that holds the parts."""
        return self._flow

    @property
    def handle(self) -> Tensor:
        """The tensor that holds the parts."""
        return self._flow

    @property
    def element_shape(self) -> TensorShape:
        """What is known of the shape of a part."""
        return self._element[0]

    def _with_flow(self, flow: Tensor) -> TensorArray:
        made = TensorArray.__new__(TensorArray)
        made.__dict__.update(self.__dict__)
        made._flow = flow
        return made

    def identity(self) -> TensorArray:
        """The same parts."""
        return self._with_flow(apply("Identity", self._flow))

    def grad(self, *_: Any, **__: Any) -> Any:
        """Not there."""
        raise NotImplementedError("TensorArray.grad: use tf.gradients")

    def write(self, index: Any, value: Any, name: Any = None) -> TensorArray:
        """With another part at a number."""
        value = convert_to_tensor(value, self.dtype)
        if self._infer:
            self._element[0] = self._element[0].merge_with(value.shape)
        flow = apply("TensorArrayWriteV3", self._flow, index, value, name=name,
                     dynamic_size=self._dynamic)  # fmt: skip
        return self._with_flow(flow)

    def read(self, index: Any, name: Any = None) -> Tensor:
        """The part of a number."""
        return apply("TensorArrayReadV3", self._flow, index, name=name,
                             shapes=[self._element[0]])  # fmt: skip

    def stack(self, name: Any = None) -> Tensor:
        """All parts, next to each other."""
        shape = self._element[0]
        full = unknown_shape() if shape.lengths is None else TensorShape([None, *shape.lengths])
        return apply(
            "TensorArrayGatherV3",
            self._flow,
            name=name or "TensorArrayStack/TensorArrayGatherV3",
            shapes=[full],
        )

    pack = stack

    def gather(self, indices: Any, name: Any = None) -> Tensor:
        """The parts of some numbers, next to each other."""
        return apply("GatherV2", self._flow, indices, 0, name=name, batch_dims=0)

    def concat(self, name: Any = None) -> Tensor:
        """All parts, behind each other."""
        stacked = self.stack()
        shape = stacked.shape
        if shape.ndims is None or not shape[2:].is_fully_defined():
            raise NotImplementedError("TensorArray.concat needs parts of known shape")
        return apply("Reshape", stacked, [-1, *shape[2:].as_list()], name=name)

    def unstack(self, value: Any, name: Any = None) -> TensorArray:
        """With these parts."""
        value = convert_to_tensor(value, self.dtype)
        if self._infer and value.shape.ndims is not None:
            self._element[0] = self._element[0].merge_with(value.shape[1:])
        return self._with_flow(apply("TensorArrayScatterV3", value, name=name))

    unpack = unstack

    def scatter(self, indices: Any, value: Any, name: Any = None) -> TensorArray:
        """With these parts at some numbers."""
        value = convert_to_tensor(value, self.dtype)
        flow = apply("DynamicStitch", convert_to_tensor(indices), value)
        return self._with_flow(flow)

    def split(self, value: Any, lengths: Any, name: Any = None) -> TensorArray:
        """Not there."""
        raise NotImplementedError("TensorArray.split: use tf.split, and write each part")

    def size(self, name: Any = None) -> Tensor:
        """How many parts there are."""
        return apply("TensorArraySizeV3", self._flow, name=name)

    def close(self, name: Any = None) -> Any:
        """Nothing."""
        return None
