"""`attribute`: one question to a model, answered by one of the field's methods."""

from __future__ import annotations

import os
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

from ..base.errors import GradientError, did_you_mean
from ..ir.types import Array
from .explained import Explained
from .found import Found
from .heatmap import pixels, plane, png
from .maps import grad_cam
from .shares import deeplift, lrp
from .slopes import (
    deconvnet,
    gradient,
    guided_backprop,
    input_times_gradient,
    integrated_gradients,
    saliency,
    smoothgrad,
)

__all__ = ["Attribution", "attribute"]

METHODS: dict[str, Callable[..., Found]] = {
    "gradient": gradient,
    "saliency": saliency,
    "input_times_gradient": input_times_gradient,
    "integrated_gradients": integrated_gradients,
    "smoothgrad": smoothgrad,
    "guided_backprop": guided_backprop,
    "deconvnet": deconvnet,
    "grad_cam": grad_cam,
    "lrp": lrp,
    "deeplift": deeplift,
}
STEP_BY_STEP = (lrp, deeplift)
"""Those that do not pass loops: models that were loaded are built step by step for them."""


class Attribution:
    """What gg.attribute returns.

    values   {name of an input: array of its shape}; of Grad-CAM, {name of the layer: its map}
    method   as it was asked for
    scores   (N,): what was explained
    target   (N, K): which number of the output, for each example; None: it has one
    balance  {"score": what was to be attributed, "attributed": what was, and "biases",
             "stabiliser", "rest" for what is elsewhere}; None where a method promises nothing
    note     which of several outputs was explained, where none was named; else empty

    >>> x = gg.placeholder(("N", 2), name="x")
    >>> found = gg.attribute(gg.compile(x, gg.sum(x * x, axis=1)), [[1.0, 2.0]], "gradient")
    >>> found.value
    array([[2., 4.]])
    """

    def __init__(
        self,
        values: dict[str, Array],
        method: str,
        scores: Array,
        target: Array | None,
        balance: dict[str, float] | None,
        note: str = "",
    ) -> None:
        self.values = values
        self.method = method
        self.scores = scores
        self.target = target
        self.balance = balance
        self.note = note

    @property
    def value(self) -> Array:
        """The attribution of the only input; GradientError where there are several."""
        if len(self.values) != 1:
            raise GradientError(f"there are several inputs: .values[name] of {list(self.values)}")
        return next(iter(self.values.values()))

    def write_picture(
        self, path: str | os.PathLike[str], example: int = 0, name: str | None = None
    ) -> None:
        """Write the attribution of one example as a PNG: red for the score, blue against it.

        Parameters:
            path: the file, which is replaced.
            example: which one.
            name: of which input; None: of the only one.

        Returns: nothing.

        Raises: ShapeError for an attribution of more than three axes; OSError of the disk.
        """
        values = self.value if name is None else self.values[name]
        Path(path).write_bytes(png(pixels(plane(values[example]))))

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}: {list(a.shape)}" for name, a in self.values.items())
        return f"<{self.method} of {shapes}{self.note and f', {self.note}'}>"


def attribute(
    model: Any,
    inputs: Any,
    method: str = "integrated_gradients",
    *,
    target: Any = None,
    output: str | None = None,
    **options: Any,
) -> Attribution:
    """Attribute a score of a model to its inputs. The model is not changed.

    gradient, saliency (its magnitude), input_times_gradient; integrated_gradients(baseline=0,
    steps=50); smoothgrad(samples=50, stdev=None, seed=0), noise of 0.15 times the range of an
    input unless given; guided_backprop, deconvnet (activations=("Relu",));
    grad_cam(layer=None, relu=True, channel_axis=None); deeplift(baseline=0, unknown="error");
    lrp(composite="epsilon", epsilon=1e-6, gamma=0.25, alpha=2, low=0, high=1, stabiliser=1e-6,
    rules=None, unknown="error"), composites being epsilon, epsilon_plus, epsilon_alpha_beta,
    epsilon_gamma (of dense layers, of convolutions), and with _flat or _box another rule for first
    layers. steps and samples are ints >= 1, seed one >= 0; stdev, epsilon, gamma and stabiliser
    finite numbers >= 0, alpha one >= 1; low <= high, and the inputs lie between them.

    Grad-CAM without a layer takes the last map of channels and places that all paths from
    convolutions to the score go through, of what a convolution makes, its bias added, and of sums
    and concatenations of such maps: the last convolution of a plain network, the end of the last
    block of a residual or dense one.

    Parameters:
        model: what gg.onnx.load or gg.compile returned, or an EntryPoint. LRP and DeepLIFT, which
            do not pass loops, take a model of gg.onnx.load as its `unrolled()`, unless rules= are
            given.
        inputs: an array, or a list or {name: array} for several inputs; examples in axis 0.
        method: one of those above.
        target: which number of the output (N, ...) is explained: an int, a class, for all examples;
            a list, one for each; a tuple, a place of several axes, of which the sum over those that
            are not named is taken; None: the largest number of each example.
        output: the name of a floating output; None: the first, of which `note` says so.
        **options: those of the method.

    Returns: an Attribution.

    Raises: GradientError where a method has no meaning for the model, as Grad-CAM without a layer
    of channels and places, and for input that is not a model; ValueError for an unknown method or
    composite; TypeError for an option that the method has not, or that the composite does not read;
    ValueError for one outside its domain; ShapeError for a target that is not there.

    Source: Simonyan et al. 2014, "Deep inside convolutional networks"; Sundararajan et al. 2017,
        "Axiomatic attribution for deep networks"; Smilkov et al. 2017, "SmoothGrad"; Springenberg
        et al. 2015; Zeiler and Fergus 2014; Selvaraju et al. 2017, "Grad-CAM"; Shrikumar et al.
        2017; Bach et al. 2015; composites: Montavon et al. 2019, "Layer-wise relevance propagation:
        an overview"; Kohlbrenner et al. 2020, "Towards best practice in explaining neural network
        decisions with LRP".

    >>> x = gg.placeholder(("N", 2), name="x")
    >>> f = gg.compile(x, gg.nn.relu(x @ np.array([[1.0, 2.0], [-1.0, 1.0]])))
    >>> found = gg.attribute(f, [[3.0, 1.0]], "lrp", target=1)
    >>> found.value.round(3), round(found.balance["score"], 3)
    (array([[6., 1.]]), 7.0)
    """
    if method not in METHODS:
        near = did_you_mean(str(method), METHODS, f"It is one of {', '.join(METHODS)}.")
        raise ValueError(f"method= names one, got {method!r}. {near}".rstrip())
    fn = METHODS[method]
    known = list(signature(fn).parameters)[1:]
    for name in options:
        if name not in known:
            near = did_you_mean(name, known, f"It has {', '.join(known) or 'none'}.")
            raise TypeError(f"{method} has no option {name!r}. {near}".rstrip())
    if fn in STEP_BY_STEP and hasattr(model, "unrolled") and not options.get("rules"):
        model = model.unrolled()  # rules of the caller are for the nodes that there are
    asked = Explained(model, inputs, output, target)
    found = fn(asked, **options)
    scores = asked.run(asked.score)
    return Attribution(found.values, method, scores, asked.target, found.balance, asked.note)
