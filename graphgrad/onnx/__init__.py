"""Models of ONNX: `load` reads one as a graph, `export` writes a compiled function as one, and
`differentiate` gives one derivatives of its outputs."""

from .differentiating import differentiate
from .exporting import export
from .loading.load import load
from .loading.model import OnnxModel

__all__ = ["OnnxModel", "differentiate", "export", "load"]


def __dir__() -> list[str]:
    return __all__
