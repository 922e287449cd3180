"""Objects that only have to be there: options of sessions, logging, devices."""

from __future__ import annotations

import logging as _logging
from contextlib import nullcontext
from typing import Any

from .create import convert_to_tensor
from .graph import Tensor, get_default_graph
from .ops.math import unsorted_segment_sum
from .static import constant_value

__all__ = [
    "ConfigProto", "Event", "GPUOptions", "GraphOptions", "HistogramProto", "IndexedSlices",
    "OptimizerOptions", "RunMetadata", "RunOptions", "SparseTensor", "Summary", "colocate_with",
    "container", "device", "get_static_value",
]  # fmt: skip


class Options:
    """Attributes that are kept, and nothing else."""

    def __init__(self, *_: Any, **kwargs: Any) -> None:
        self.__dict__.update(kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = Options()
        self.__dict__[name] = made
        return made

    def CopyFrom(self, other: Any) -> None:
        """Become the same as another."""
        self.__dict__.update(other.__dict__)

    def __call__(self, *_: Any, **__: Any) -> Options:
        return self


class ConfigProto(Options):
    """Options of a session: kept, and nothing else."""


class GPUOptions(Options):
    """Options of devices: kept, and nothing else."""


class GraphOptions(Options):
    """Options of graphs: kept, and nothing else."""


class OptimizerOptions(Options):
    """Options of optimisation: kept, and nothing else."""

    L0, L1, OFF, ON_1, ON_2 = -1, 0, -1, 1, 2


class RunOptions(Options):
    """Options of a run: kept, and nothing else."""

    NO_TRACE, SOFTWARE_TRACE, HARDWARE_TRACE, FULL_TRACE = 0, 1, 2, 3


class RunMetadata(Options):
    """What a run would tell: nothing."""


class Summary(Options):
    """A summary that is put together by hand."""

    Value = Options
    Image = Options


class Event(Options):
    """An event that is put together by hand."""


class HistogramProto(Options):
    """A histogram that is put together by hand."""


class IndexedSlices:
    """Rows of a gradient by number. Gradients of gathers are dense tensors here."""

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self.values, self.indices, self.dense_shape = values, indices, dense_shape

    @property
    def dtype(self) -> Any:
        """The type of the values."""
        return self.values.dtype

    @property
    def graph(self) -> Any:
        """The graph of the values."""
        return self.values.graph

    @property
    def op(self) -> Any:
        """The op of the values."""
        return self.values.op

    @property
    def name(self) -> str:
        """The name of the values."""
        return str(self.values.name)

    def _tensor_of(self, as_ref: bool = False) -> Tensor:
        """The dense tensor."""
        if self.dense_shape is None:
            raise ValueError("Tensor conversion requested for IndexedSlices without dense_shape")
        rows = convert_to_tensor(self.dense_shape)[0]
        return unsorted_segment_sum(self.values, self.indices, rows)

    def _fetch_parts(self) -> Any:
        parts = [self.values, self.indices]
        if self.dense_shape is not None:
            parts.append(self.dense_shape)
        return parts, lambda found: IndexedSlicesValue(*found)


class IndexedSlicesValue:
    """What a run gives for IndexedSlices."""

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self.values, self.indices, self.dense_shape = values, indices, dense_shape


class SparseTensor:
    """Not there."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError(
            "SparseTensor is not there: use dense tensors, with tf.gather and tf.scatter_nd"
        )


def device(device_name_or_function: Any) -> Any:
    """Says where ops run: it is noted, and nothing else."""
    return get_default_graph().device(device_name_or_function)


def colocate_with(op: Any, ignore_existing: bool = False) -> Any:
    """Says what ops run next to: nothing."""
    return nullcontext()


def container(name: str) -> Any:
    """Says where state lives: nothing."""
    return nullcontext(name)


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """The value of a tensor, where it depends on constants and shapes alone; else None."""
    return constant_value(tensor)


logger = _logging.getLogger("tensorflow")
