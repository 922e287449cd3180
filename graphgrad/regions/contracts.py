"""What a rule declares itself to be, so that a check tests that instead of calling it a bug."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..base.errors import did_you_mean

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
    """A declaration about a rule, which check_gradient tests.

    Parameters:
        kind: one of "exact", "surrogate", "scaled", "stop", "estimator", "attribution", "policy".
        of: for a surrogate the function (of the site's inputs, giving its outputs) whose derivative
            the rule is; for a scaled rule the factor.

    Raises: ValueError for an unknown kind.

    >>> gg.surrogate_of(gg.tanh).meaning
    'the true derivative of another function'
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
    """The contract of a rule that is the derivative of f instead.

    Parameters: f: a function of the site's inputs that returns what stands for its outputs.

    Returns: a Contract.

    >>> @gg.register_gradient("smooth sign", contract=gg.surrogate_of(gg.tanh))
    ... def smooth_sign(site, dy):
    ...     return dy * (1.0 - gg.tanh(site.inputs[0]) ** 2)
    >>> x = gg.constant([0.3])
    >>> with gg.override_gradient("smooth sign") as region:
    ...     y = gg.sign(x)
    >>> gg.check_gradient(region).ok
    True
    """
    return Contract("surrogate", f)


def scaled(factor: float) -> Contract:
    """The contract of a rule that is the true derivative times a factor.

    Parameters: factor: a number.

    Returns: a Contract.

    >>> gg.scaled(-1.0)
    scaled of -1.0
    """
    return Contract("scaled", factor)


def as_contract(contract: Contract | str | None) -> Contract | None:
    """A contract from its kind's name."""
    return Contract(contract) if isinstance(contract, str) else contract
