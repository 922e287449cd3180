"""What a method finds: an attribution for each input, and where all of the score has gone."""

from __future__ import annotations

from typing import NamedTuple

from ..ir.types import Array


class Found(NamedTuple):
    """What a method found.

    values   {name of an input: Array}
    balance  {"score": what was to be attributed, "attributed": what was, ...}; None: no promise
    """

    values: dict[str, Array]
    balance: dict[str, float] | None = None
