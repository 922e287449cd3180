"""How operators of ONNX are read, a file for each family. Importing this fills the table."""

from . import (
    activations,
    classic,
    control,
    convolutions,
    elementwise,
    fourier,
    images,
    indexing,
    losses,
    normalisation,
    pools,
    products,
    quantisation,
    recurrent,
    reductions,
    shapes,
)
from .table import Form, form_of, forms

__all__ = [
    "Form",
    "activations",
    "classic",
    "control",
    "convolutions",
    "elementwise",
    "form_of",
    "forms",
    "fourier",
    "images",
    "indexing",
    "losses",
    "normalisation",
    "pools",
    "products",
    "quantisation",
    "recurrent",
    "reductions",
    "shapes",
]
