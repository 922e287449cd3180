"""What the demo finds out to hold or not."""

from __future__ import annotations

from typing import NamedTuple


class Check(NamedTuple):
    """A sentence, what was found, and whether it holds."""

    claim: str
    found: str
    holds: bool


def close(apart: float) -> bool:
    """Whether a distance is rounding."""
    return apart <= 1e-9


def distance(apart: float) -> str:
    """A distance in words."""
    return f"differ by at most {apart:.0e}" if apart else "no difference"
