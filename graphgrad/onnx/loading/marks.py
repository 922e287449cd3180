"""Regions with their rules, of functions that `export(marks=True)` wrote."""

from __future__ import annotations

import json
from typing import Any

from ...base.errors import FileError
from ...ir.node import Tensor
from ...ops.base import NO_GRAD, ZERO
from ...regions.rules import Rule
from ...regions.scopes import override_gradient
from .call import Value
from .protobuf import metadata_of

__all__ = ["REGION", "RULE", "StoredMark", "mark_of"]

REGION, RULE = "graphgrad.region", "graphgrad.rule"
"""The domains of functions that are regions, and of those that are their rules."""


class StoredMark:
    """The mark of one call of a region's function.

    read     what the rule reads of the inside, by name; found when the inside is built
    """

    def __init__(self, builder: Any, function: Any, rule: Any) -> None:
        self.builder = builder
        self.rule = rule
        told, of_rule = metadata_of(function), metadata_of(rule)
        self.name = _of(told, "rule")
        self.count = int(told.get("graphgrad.inputs", len(function.input)))
        self.options: dict[str, Any] = {key: _of(told, key) for key in ("order", "escape")}
        self.attrs = _json(told, "attributes", dict)
        self.residuals = _json(of_rule, "residuals", list)
        self.returns = _json(of_rule, "returns", list)
        self.read: list[Value] = []

    def region(self, inputs: list[Tensor]) -> override_gradient:
        """The scope of the region, with the rule under its name."""
        rule = Rule(self.answer, self.name)
        declared = inputs[: self.count]
        return override_gradient(rule, inputs=declared, **self.options, **self.attrs)

    def answer(self, site: Any, *dys: Any) -> list[Any]:
        """What the function of the rule builds for a site."""
        given = [dy for dy in dys if dy is not None]
        values = [*site.inputs, *site.outputs, *self.read, *given]
        made = iter(self.builder.opened(self.rule, values, f"{self.name}/"))
        return [{"zero": ZERO, "none": NO_GRAD}.get(kind) or next(made) for kind in self.returns]


def mark_of(builder: Any, function: Any) -> StoredMark | None:
    """The mark of a function that is a region; None for other functions."""
    if function.domain != REGION:
        return None
    rule = builder.functions.get((RULE, function.name, ""))
    if rule is None:
        raise FileError(f"the region {function.name!r:.80} has no rule in the file")
    return StoredMark(builder, function, rule)


def _of(told: dict[str, str], key: str) -> str:
    try:
        return told[f"graphgrad.{key}"]
    except KeyError:
        raise FileError(f"a function of {REGION} says no {key}") from None


def _json(told: dict[str, str], key: str, kind: type) -> Any:
    try:
        parsed = json.loads(_of(told, key))
    except ValueError:
        parsed = None
    if not isinstance(parsed, kind):
        raise FileError(f"graphgrad.{key} is not JSON of a {kind.__name__}")
    return parsed
