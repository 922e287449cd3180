"""Functions of JAX and PyTorch as ops."""

from .jax_function import from_jax
from .torch_call import from_torch

__all__ = ["from_jax", "from_torch"]
