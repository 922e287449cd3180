"""Grad-CAM: where in a layer of channels and places the score comes from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..base.domains import INTEGER
from ..base.errors import GradientError, did_you_mean
from ..base.flags import truth
from ..differentiate.gradients import gradients
from ..ir.node import Node, Tensor
from ..ops.shape.reshaping import normal_axis
from .explained import Explained
from .found import Found

LAYERS = ("Conv2D", "Conv2DBackpropInput")
JOINS = ("Add", "AddN", "Concat", "Subtract")


def grad_cam(
    asked: Explained,
    layer: str | None = None,
    relu: bool = True,
    channel_axis: int | None = None,
) -> Found:
    """The channels of a layer, weighted by the mean of the derivative over their places.

    layer: a name of a tensor of channels and places. None: the last map that all paths from
    convolutions to the score go through, of what a convolution makes, its bias added, and of sums
    and concatenations of such maps: the last convolution of a plain network, the sum or the
    concatenation that ends the last block of a residual or dense one. channel_axis: its axis of
    channels; None: that of the convolutions that it is made of. The map is (N, 1, ...places).
    """
    truth("relu", relu)
    maps = _Maps(asked.score)
    at = maps.last() if layer is None else _named(asked, layer)
    axis = maps.channels.get(at) if channel_axis is None else _axis(channel_axis, at)
    if axis is None:
        raise GradientError(
            f"the channel axis of {at.name}: {at.type!r} is unknown, since it is not the output "
            "of a convolution. Pass channel_axis="
        )
    with asked.graph:
        (slope,) = gradients(asked.score, [at], unconnected="zero")
    value, dy = [np.moveaxis(a, axis, 1) for a in asked.run([at, slope])]
    places = tuple(range(2, value.ndim))
    cam = (value * dy.mean(places, keepdims=True)).sum(1, keepdims=True)
    return Found({at.node.name: np.maximum(cam, 0) if relu else cam})


def _named(asked: Explained, name: str) -> Tensor:
    try:
        at = asked.graph.tensor(name)
    except Exception as error:
        near = did_you_mean(name, (n.name for n in asked.graph.nodes))
        raise GradientError(f"layer= names a tensor, got {name!r}. {near}".rstrip()) from error
    if at.ndim < 3:
        raise GradientError(
            "Grad-CAM needs a layer with channel and spatial axes, (N, C, ...) or (N, ..., C); "
            f"{name} is {at.type!r}"
        )
    return at


def _axis(given: int, t: Tensor) -> int:
    axis = normal_axis(INTEGER("channel_axis", given), t.ndim)
    if axis == 0:
        raise GradientError("channel_axis= cannot be 0, which is the batch axis")
    return axis


class _Maps:
    """The maps of channels and places between the convolutions of a graph and a score.

    channels  {tensor: the axis of its channels}
    below     the nodes that are made of what a convolution makes and that the score is made of
    """

    def __init__(self, score: Tensor) -> None:
        assert score.graph is not None
        wanted = {score.node}
        for node in reversed(score.graph.nodes[: score.node.index + 1]):
            if node in wanted:
                wanted.update(t.node for t in _read(node))
        self.channels: dict[Tensor, int] = {}
        self.below: dict[Node, list[Node]] = {}
        for node in score.graph.nodes:
            if node in wanted:
                self._enter(node)

    def _enter(self, node: Node) -> None:
        """Note a node whose inputs are noted."""
        sources = [t.node for t in _read(node) if t.node in self.below]
        if sources or node.type in LAYERS:
            self.below[node] = sources
            axis = self._axis(node)
            if axis is not None:
                self.channels[node.outputs[0]] = axis

    def _axis(self, node: Node) -> int | None:
        """The axis of channels of what a node makes; None where it makes no map."""
        y = node.outputs[0]
        if node.type in LAYERS:
            return 1 if node.attrs["data_format"] == "NCHW" else y.ndim - 1
        known = [(t, self.channels[t]) for t in _read(node) if t in self.channels]
        if not known:
            return None
        x, axis = known[0]
        if node.type == "Transpose":
            return int(node.attrs["axes"].index(axis))
        if node.type in ("Squeeze", "ExpandDims"):
            return _shifted(axis, x.ndim, node.attrs["axes"], node.type == "ExpandDims")
        if node.type == "Concat":
            return axis if node.attrs["axis"] == axis else None
        if y.ndim != x.ndim:
            ends = axis == x.ndim - 1 and node.type == "Reshape" and x.shape[-1] == y.shape[-1]
            return y.ndim - 1 if ends and y.ndim > 2 else None
        alike = y.shape == x.shape or node.op.elementwise
        return axis if alike or node.type == "Pad" or "data_format" in node.attrs else None

    def last(self) -> Tensor:
        """The last map of convolutions that all paths from these to the score go through."""
        readers: dict[Node, list[Node]] = {node: [] for node in self.below}
        for node, sources in self.below.items():
            for source in sources:
                readers[source].append(node)
        last, reach = None, -1
        for node, sources in self.below.items():
            if not sources:
                last = None  # a path begins here, which goes through nothing before
            if reach <= node.index and self._is_map(node):
                last = node
            reach = max([reach, *(reader.index for reader in readers[node])])
        if last is None:
            why = (
                "no single feature map that all its convolutions lead to"
                if self.below
                else "no convolution"
            )
            raise GradientError(
                f"Grad-CAM needs a layer with channel and spatial axes, and the model has {why}. "
                "Name a tensor with layer="
            )
        adds = [n for n in readers[last] if n.type == "Add" and len(self.below[n]) == 1]
        biased = last.type in LAYERS and len(readers[last]) == 1 and adds
        (y,) = (adds[0] if biased else last).outputs
        return y

    def _is_map(self, node: Node) -> bool:
        """Whether a node is a convolution, or joins what several make, over more than one place."""
        (y, *others) = node.outputs
        axis = self.channels.get(y)
        maps = [t for t in _read(node) if t in self.channels]
        joins = node.type in JOINS and len(maps) > 1
        if others or axis is None or not (joins or node.type in LAYERS):
            return False
        return any(n != 1 for i, n in enumerate(y.shape) if i not in (0, axis))


def _read(node: Node) -> list[Tensor]:
    """What a node reads by value, of numbers that are differentiated."""
    skipped = node.op.shape_only
    return [t for i, t in enumerate(node.inputs) if i not in skipped and t.type.differentiable]


def _shifted(axis: int, ndim: int, axes: Sequence[int], put_in: bool) -> int | None:
    """Where an axis is when axes of length 1 are put in or taken out."""
    if put_in:
        left = [i for i in range(ndim + len(axes)) if i not in axes]
        return left[axis]
    left = [i for i in range(ndim) if i not in axes]
    return left.index(axis) if axis in left else None
