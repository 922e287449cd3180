"""What onnxruntime cannot compute in float64 on a CPU."""

from __future__ import annotations

__all__ = ["WITHOUT_FLOAT64"]

WITHOUT_FLOAT64 = frozenset(
    (
        *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "AveragePool", "Col2Im", "Conv"),
        *("ConvTranspose", "Cosh", "Elu", "Erf", "LeakyRelu", "Sinh", "Softplus", "Tan"),
    )
)
"""Operators of which its CPU provider (1.32) has a kernel for float32, and none for float64."""
