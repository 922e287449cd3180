"""Graphs beside JAX and PyTorch: their functions as ops, and compiled functions as theirs."""

from typing import TYPE_CHECKING

from ..base.first_tries import unknown_names
from ..ops.foreign import from_jax, from_torch
from .jax_functions import to_jax
from .jax_programs import open_jax
from .programs import open_report, retrofit
from .reports import OpenedRow, OpenReport
from .stablehlo import StableHlo, load_stablehlo
from .torch_functions import to_torch
from .torch_programs import open_torch

__all__ = [
    "OpenReport",
    "OpenedRow",
    "StableHlo",
    "from_jax",
    "from_torch",
    "load_stablehlo",
    "open_jax",
    "open_report",
    "open_torch",
    "retrofit",
    "to_jax",
    "to_torch",
]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # a checker would take it for every name it does not know
    __getattr__ = unknown_names(__name__)
