"""Models of ONNX: `load` reads one as a graph, `export` writes a compiled function as one."""

from .exporting import export
from .loading.load import load
from .loading.model import OnnxModel

__all__ = ["OnnxModel", "export", "load"]


def __dir__() -> list[str]:
    return __all__
