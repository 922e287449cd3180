"""Random numbers, of explicit seeds or the graph's own: `gg.random.normal`, and so on."""

from typing import NoReturn

from .ir.first_tries import unknown_name
from .ops import random as _functions
from .ops.random import *  # noqa: F403

__all__ = _functions.__all__


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> NoReturn:
    raise unknown_name(__name__, name)
