"""The package onnx, which loads when it is first used."""

from __future__ import annotations

from typing import Any

from ..base.errors import GraphGradError
from ..base.lazy import lazy_module

__all__ = ["need_onnx", "onnx", "onnx_helper", "onnx_inliner", "onnx_numpy"]

onnx: Any = lazy_module("onnx")
onnx_helper: Any = lazy_module("onnx.helper")
onnx_inliner: Any = lazy_module("onnx.inliner")
onnx_numpy: Any = lazy_module("onnx.numpy_helper")


def need_onnx(what: str) -> None:
    """GraphGradError where the package is not installed."""
    if onnx is None:
        raise GraphGradError(f"{what} needs the package onnx: pip install 'graphgrad[onnx]'")
