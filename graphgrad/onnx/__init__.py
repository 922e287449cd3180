"""Graphs beside ONNX: compiled functions as models that other runtimes run."""

from .exporting import export

__all__ = ["export"]


def __dir__() -> list[str]:
    return __all__
