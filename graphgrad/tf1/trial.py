"""The shapes of an op's results where nothing else says them: it is built in graphgrad, to look."""

from __future__ import annotations

from typing import Any

import numpy as np

import graphgrad as gg

from .shapes import TensorShape, unknown_shape
from .static import constant_value

__all__ = ["NotKnown", "Trial", "as_results", "stand_ins", "tried"]

STAND_INS = (6, 12)  # two lengths for one that is not known: what differs is not known either


class NotKnown(Exception):
    """A value that a shape needs is known only in a run."""


class Trial:
    """Stands for the trace of a run: values are known where they are constants."""

    def value(self, t: Any) -> Any:
        """The value of a tensor, where it is constant."""
        found = constant_value(t)
        if found is None:
            raise NotKnown(t.name)
        return found

    def constant(self, t: Any) -> Any:
        """The value of a tensor, or None."""
        return constant_value(t)

    def key(self, op: Any) -> Any:
        """A key for random numbers."""
        return gg.constant(np.int64(0))


class Draft:
    """An op that is not made yet."""

    def __init__(self, definition: Any, inputs: Any, attrs: Any, count: int) -> None:
        self.type, self.inputs, self.attrs = definition.type, inputs, attrs
        self.name, self.definition = definition.type, definition
        self.outputs = [None] * count


def as_results(made: Any) -> list[Any]:
    """What a lowering returned, as a list."""
    return list(made) if isinstance(made, list | tuple) else [made]


def tried(definition: Any, inputs: Any, attrs: Any, dtypes: Any) -> list[TensorShape]:
    """The shapes of an op's results. Raises ValueError where the inputs do not fit together."""
    unknown = [unknown_shape() for _ in dtypes]
    if definition.lower is None or any(t.shape.lengths is None for t in inputs):
        return unknown
    known = all(t.shape.is_fully_defined() for t in inputs)
    found = []
    for stand_in in STAND_INS[: 1 if known else 2]:
        try:
            found.append(_shapes(definition, inputs, attrs, len(dtypes), stand_in))
        except (NotKnown, NotImplementedError):
            return unknown
        except (ValueError, gg.GraphGradError) as error:
            if known:
                raise ValueError(str(error).splitlines()[0]) from error
            return unknown
        except Exception:
            return unknown
    if known:
        return [TensorShape(s) for s in found[0]]
    both = zip(*found, strict=True)
    return [
        unknown_shape()
        if len(a) != len(b)
        else TensorShape([m if m == n else None for m, n in zip(a, b, strict=True)])
        for a, b in both
    ]


def stand_ins(inputs: Any, length: int = STAND_INS[0]) -> list[Any]:
    """Placeholders for tensors, with this length where one is not known; None for strings."""
    return [
        gg.placeholder(
            tuple([length if n is None else n for n in t.shape.lengths]),
            t.dtype.base_dtype.numpy,
        )
        if t.dtype.name != "string"
        else None
        for t in inputs
    ]


def _shapes(definition: Any, inputs: Any, attrs: Any, count: int, stand_in: int) -> list[Any]:
    with gg.Graph().as_default():
        args = stand_ins(inputs, stand_in)
        draft = Draft(definition, inputs, attrs, count)
        return [r.shape for r in as_results(definition.lower(Trial(), draft, *args))]
