"""What a rule declares itself to be, so that a check tests that instead of calling it a bug."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..ir.errors import did_you_mean

__all__ = ["Contract", "scaled", "surrogate_of"]

KINDS: Final = {
    "exact": "the true derivative",
    "surrogate": "the true derivative of another function",
    "scaled": "the true derivative times a factor",
    "stop": "nothing flows",
    "estimator": "right on average over random draws",
    "attribution": "a share of the output, not a derivative",
    "policy": "the true derivative, changed on purpose (clipped, masked, repaired)",
}


class Contract:
    """A declaration about a rule.

    kind    one of "exact", "surrogate", "scaled", "stop", "estimator", "attribution", "policy"
    of      for a surrogate the function (of the site's inputs, giving its outputs) whose
            derivative the rule is; for a scaled rule the factor
    """

    __slots__ = ("kind", "of")

    def __init__(self, kind: str, of: Any = None) -> None:
        if kind not in KINDS:
            raise ValueError(
                f"a contract is one of {', '.join(map(repr, KINDS))}, got {kind!r}. "
                f"{did_you_mean(str(kind), KINDS)}".rstrip()
            )
        self.kind = kind
        self.of = of

    @property
    def meaning(self) -> str:
        """The kind in words."""
        return KINDS[self.kind]

    def __repr__(self) -> str:
        return self.kind if self.of is None else f"{self.kind} of {self.of!r}"


def surrogate_of(f: Callable[..., Any]) -> Contract:
    """The contract of a rule that is the derivative of f (of the inputs, giving the outputs)."""
    return Contract("surrogate", f)


def scaled(factor: float) -> Contract:
    """The contract of a rule that is the true derivative times a factor."""
    return Contract("scaled", factor)


def as_contract(contract: Contract | str | None) -> Contract | None:
    """A contract from its kind's name."""
    return Contract(contract) if isinstance(contract, str) else contract
