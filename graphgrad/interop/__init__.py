"""Graphs beside JAX and PyTorch: their functions as ops, and compiled functions as theirs."""

from .jax_functions import to_jax
from .jax_ops import from_jax
from .torch_call import from_torch
from .torch_functions import to_torch

__all__ = ["from_jax", "from_torch", "to_jax", "to_torch"]


def __dir__() -> list[str]:
    return __all__
