"""What onnxruntime cannot compute in float64 on a CPU."""

from __future__ import annotations

__all__ = ["WITHOUT_FLOAT64"]

WITHOUT_FLOAT64 = frozenset()
"""Operators of which its CPU provider has no kernel for float64; it has one for float32."""
