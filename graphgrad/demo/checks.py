"""What the demo finds out to hold or not."""

from __future__ import annotations

from typing import NamedTuple


class Check(NamedTuple):
    """A sentence, what was found, and whether it holds."""

    claim: str
    found: str
    holds: bool


def close(distance: float) -> bool:
    """Whether a distance is rounding."""
    return distance <= 1e-9
