"""`--overlay KIND`: one number a node, computed by running the graph, or read from a file."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import did_you_mean
from ..base.kinds import is_inexact
from ..compiled import compile
from ..debug.running import values
from ..inspect.scene.overlay import Overlay
from .errors import TargetError
from .feeding import feeds_for
from .target import TargetGraph

MEASURES: dict[str, Callable[[Any], float]] = {
    "largest": lambda a: float(np.max(np.abs(a))) if a.size else 0.0,
    "nonfinite": lambda a: float(np.sum(~np.isfinite(a))),
    "zeros": lambda a: float(np.mean(a == 0)) if a.size else 0.0,
}
TITLES = {
    "largest": "largest magnitude",
    "nonfinite": "NaN and infinities",
    "zeros": "share of zeros",
}
OVERLAY = (
    "one number a node, as a colour: largest (magnitude), nonfinite (how many NaN and infinities), "
    "zeros (their share) or time (microseconds), for what --feed and --random give; or FILE.json, "
    "{name of a tensor or node: number}"
)


def overlay_of(kind: str, target: TargetGraph, options: Namespace) -> Overlay:
    """The overlay that was asked for; TargetError for another word or a file that is none."""
    if kind.endswith(".json"):
        return _from_file(kind)
    if kind == "time":
        feeds = feeds_for(target, options)
        profile = compile(list(feeds), target.outputs).profile(*feeds.values(), repeat=5)
        return Overlay.of_profile(profile, target.graph)
    if kind not in MEASURES:
        near = did_you_mean(kind, [*MEASURES, "time"])
        raise TargetError(
            f"--overlay takes {', '.join(MEASURES)}, time or a .json file, got {kind!r}. "
            f"{near}".rstrip()
        )
    arrays = values(target.outputs, feeds_for(target, options)).by_tensor
    floating = {t: a for t, a in arrays.items() if is_inexact(a.dtype)}
    return Overlay.of_values(floating, MEASURES[kind], TITLES[kind])


def _from_file(name: str) -> Overlay:
    try:
        numbers = json.loads(Path(name).read_text(encoding="utf-8"))
    except ValueError as error:
        raise TargetError(f"--overlay {name}: {error}") from error
    if not isinstance(numbers, dict):
        raise TargetError(f"--overlay {name}: holds no {{name: number}}, got {numbers!r}")
    try:
        return Overlay(numbers, Path(name).stem)
    except TypeError as error:
        raise TargetError(f"--overlay {name}: {error}") from error
