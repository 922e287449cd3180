"""Models of ONNX: `gg.onnx.load` reads one as a graph."""

from .loading.load import load
from .loading.model import OnnxModel

__all__ = ["OnnxModel", "load"]


def __dir__() -> list[str]:
    return __all__
