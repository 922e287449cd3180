"""Operators of `com.microsoft`: what onnxruntime's optimiser makes of several of ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....base.errors import FileError
from ....ir.node import Tensor
from ....ir.types import as_dtype
from ....ops import nn
from ....ops.arrays.taking import take
from ....ops.base import cast
from ....ops.contract.products import matmul
from ....ops.create.creation import arange
from ....ops.elementwise.logic import not_equal
from ....ops.nn.activations import sigmoid
from ....ops.reduce import reductions
from ....ops.shape.reshaping import moveaxis, swapaxes
from ...package import onnx_helper
from ..call import OperatorCall
from .common import like
from .convolutions import convolved
from .products import gemm
from .table import form, form_of

MS = "com.microsoft"

PARAMETERS: Mapping[str, Sequence[str]] = {
    "Clip": ("min", "max"),
    "Elu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "HardSwish": (),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "Selu": ("alpha", "gamma"),
    "Sigmoid": (),
    "Softplus": (),
    "Softsign": (),
    "Tanh": (),
    "ThresholdedRelu": ("alpha",),
}
"""{activation behind a fused operator: what its numbers are called}."""

ATTRIBUTES = 10
"""A version of ONNX's operators in which bounds of Clip are attributes."""


def activated(x: Tensor, name: str, numbers: Mapping[str, float]) -> Tensor:
    """The activation of a name, as ONNX has it; "" is none."""
    if not name:
        return x
    read = form_of("", name)
    if name not in PARAMETERS or read is None:
        raise FileError(f"its activation {name!r:.40} is unknown")
    node = onnx_helper.make_node(name, ["x"], ["y"])
    y: Tensor = read.read(OperatorCall(node, ATTRIBUTES, dict(numbers), [x], lambda *_: x))
    return y


@form("FusedConv", domain=MS)
def _fused_conv(call: OperatorCall) -> Tensor:
    name, numbers = call.attribute("activation", ""), call.attribute("activation_params", [])
    names = PARAMETERS.get(name, ())
    if len(numbers) not in (0, len(names)):
        raise FileError(f"its activation {name} has {len(numbers)} numbers: {numbers}")
    z = convolved(call, call.tensor(0), call.tensor(1), call.optional(2))
    z = z + call.tensor(3) if call.given(3) else z
    return activated(z, name, dict(zip(names, numbers, strict=False)))


@form("FusedGemm", domain=MS)
def _fused_gemm(call: OperatorCall) -> Tensor:
    name = call.attribute("activation", "")
    numbers = {n: call.attribute(f"activation_{n}") for n in ("alpha", "beta", "gamma")}
    given = {n: numbers[n] for n in PARAMETERS.get(name, ()) if numbers.get(n) is not None}
    return activated(gemm(call), name, given)


@form("FusedMatMul", "TransposeMatMul", domain=MS)
def _fused_matmul(call: OperatorCall) -> Tensor:
    x, y = (_turned(call, i, side) for i, side in enumerate("AB"))
    z, alpha = matmul(x, y), call.attribute("alpha", 1.0)
    return z if alpha == 1.0 else z * like(alpha, z)


def _turned(call: OperatorCall, i: int, side: str) -> Tensor:
    """A factor: its first axis brought before the last, its last two exchanged, as is said."""
    x = call.tensor(i)
    batch, last = call.attribute(f"transBatch{side}", 0), call.attribute(f"trans{side}", 0)
    x = moveaxis(x, 0, -2) if batch and x.ndim > 1 else x
    return swapaxes(x, -1, -2) if last and x.ndim > 1 else x


@form("Gelu", "BiasGelu", domain=MS)
def _gelu(call: OperatorCall) -> Tensor:
    return nn.gelu(_biased(call))


@form("FastGelu", domain=MS)
def _fast_gelu(call: OperatorCall) -> Tensor:
    return nn.gelu(_biased(call), True)


@form("GemmFastGelu", domain=MS)
def _gemm_fast_gelu(call: OperatorCall) -> Tensor:
    z = matmul(call.tensor(0), call.tensor(1))
    return nn.gelu(z + call.tensor(2) if call.given(2) else z, True)


def _biased(call: OperatorCall) -> Tensor:
    return call.tensor(0) + call.tensor(1) if call.given(1) else call.tensor(0)


@form("QuickGelu", domain=MS)
def _quick_gelu(call: OperatorCall) -> Tensor:
    x = call.tensor(0)
    return x * sigmoid(x * like(call.attribute("alpha", 1.702), x))


@form("BiasAdd", domain=MS)
def _bias_add(call: OperatorCall) -> Tensor:
    x, bias, skip = call.tensors
    return x + bias + skip


@form("SkipLayerNormalization", domain=MS)
def _skip_layer_norm(call: OperatorCall) -> Any:
    total = _summed(call, 4)
    y = nn.standardize(total, -1, epsilon=call.attribute("epsilon", 1e-12)) * call.tensor(2)
    return _with_sum(call, y + call.tensor(3) if call.given(3) else y, total)


@form("SkipSimplifiedLayerNormalization", domain=MS)
def _skip_rms_norm(call: OperatorCall) -> Any:
    total = _summed(call, 3)
    y = nn.rms_norm(total, None, (-1,), call.attribute("epsilon", 1e-12)) * call.tensor(2)
    return _with_sum(call, y, total)


def _summed(call: OperatorCall, bias: int) -> Tensor:
    """Both first inputs and the bias."""
    total = call.tensor(0) + call.tensor(1)
    return total + call.tensor(bias) if call.given(bias) else total


def _with_sum(call: OperatorCall, y: Tensor, total: Tensor) -> Any:
    if call.wants(1) or call.wants(2):
        raise FileError("it returns the mean and deviation, which are for training")
    return y, None, None, total


@form("SimplifiedLayerNormalization")
def _simplified_layer_norm(call: OperatorCall) -> Tensor:
    x, scale = call.tensors
    call.attribute("stash_type")
    axes = tuple(range(call.attribute("axis", -1) % x.ndim, x.ndim))
    if any(call.wanted[1:]):
        raise FileError("it returns the deviation, which is for training")
    return nn.rms_norm(x, None, axes, call.attribute("epsilon", 1e-5)) * scale


@form("EmbedLayerNormalization", domain=MS)
def _embed_layer_norm(call: OperatorCall) -> Any:
    words = call.tensor(0)
    call.attribute("mask_index_type")
    places = call.tensor(8) if call.given(8) else arange(words.shape[1])
    total = take(call.tensor(2), words, 0) + take(call.tensor(3), places, 0)
    if call.given(1):
        total = total + take(call.tensor(4), call.tensor(1), 0)
    y = nn.standardize(total, -1, epsilon=call.attribute("epsilon", 1e-12)) * call.tensor(5)
    mask, integer = call.optional(7), as_dtype("int32")
    if mask is None:
        count = reductions.sum(words * 0, 1)
    else:
        count = reductions.sum(cast(not_equal(mask, 0), integer), 1)
    return y + call.tensor(6), cast(count, integer), total
