"""Functions of neural networks: `gg.nn.relu`, `gg.nn.conv`, `gg.nn.cross_entropy`, ..."""

from typing import TYPE_CHECKING

from .base.first_tries import unknown_names
from .ops import nn as _functions
from .ops.nn import *  # noqa: F403

__all__ = _functions.__all__


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:  # a checker would take it for every name it does not know
    __getattr__ = unknown_names(__name__)
