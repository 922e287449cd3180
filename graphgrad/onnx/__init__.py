"""Models of ONNX: `load` reads one as a graph, `export` writes a compiled function as one, and
`differentiate` gives one derivatives of its outputs."""

from typing import TYPE_CHECKING

from ..base.first_tries import unknown_names
from ..ir.properties import ModelProperties
from .differentiating import differentiate
from .exporting import export
from .loading.load import load
from .loading.model import OnnxModel

__all__ = ["ModelProperties", "OnnxModel", "differentiate", "export", "load"]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # a checker would take it for every name it does not know
    __getattr__ = unknown_names(__name__)
