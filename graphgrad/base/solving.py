"""The values of named lengths, from lengths whose values are known; and what is assumed of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .errors import ShapeError
from .length import Inequality, Length, divided_exactly, names_in

__all__ = ["Assumption", "Axis", "LengthSolver", "last_unknown", "solved", "told_names"]

REMEDY = ".\nPass arrays whose lengths agree, or give a length that may differ another name"

APART = "\0"  # begins a name that is solved for, where names of others stand beside it

Axis = tuple[Any, Any, str]
"""A length, or an int or None, with what it is, and where: "in x"."""


def solved(axes: Iterable[Axis], exact: bool = False) -> dict[str, Any]:
    """The values of the names in lengths of which it is known what they are.

    What they are is an int, another length, None where that is not known, or a length of JAX or
    PyTorch. A name is solved for where a length is linear in it alone once the others are known.

    exact: two lengths that may be equal, but are not known to be, are an error.

    Raises: ShapeError where no lengths from 0 on fit, with both places.
    """
    axes = list(axes)
    sizes = LengthSolver(_kept_apart(axes), exact)
    sizes.learn(axes)
    return sizes.values


class LengthSolver:
    """What `solved` finds, of axes that come one after the other.

    apart: other names for those that are solved for, as `_kept_apart` has them.
    """

    def __init__(self, apart: Mapping[str, Length] | None = None, exact: bool = False) -> None:
        self.values: dict[str, Any] = {}
        self._apart = bool(apart)
        self._exact = exact
        self._at: dict[str, Any] = dict(apart or {})
        self._told: dict[str, Axis] = {}
        self._open: list[Axis] = []

    def learn(self, axes: Iterable[Axis]) -> None:
        """ShapeError where these, with those before, fit no lengths from 0 on."""
        new = [axis for axis in axes if isinstance(axis[0], Length) and axis[1] is not None]
        while new:
            known = len(self.values)
            later = [axis for axis in new if not self._settled(axis)]
            if len(self.values) == known:
                self._open += later
                return
            new, self._open = [*self._open, *later], []

    def _settled(self, axis: Axis) -> bool:
        """Whether an axis has told what it can."""
        d, n, where = axis
        value = d.at(self._at) if self._at else d
        if not isinstance(value, Length) or self.values.keys() >= d.names:
            both = isinstance(value, int) and isinstance(n, int)
            if value != n and (both or self._exact):
                raise ShapeError(_contradiction(axis, value, self._told))
            return True
        solution = _solution(value, n, self._apart)
        if solution is None:
            return False
        name, size = solution[0].removeprefix(APART), solution[1]
        if size is None:
            raise ShapeError(f"length '{d}' is {n} {where}: no length {name} satisfies this")
        self.values[name] = self._at[name] = size
        self._told[name] = axis
        return True


def told_names(dims: Iterable[Any]) -> set[str]:
    """The names that `solved` finds the values of, once those of these lengths are known."""
    lengths = [d for d in dims if isinstance(d, Length)]
    known: set[str] = set()
    while new := {name for d in lengths if (name := last_unknown(d, known))}:
        known |= new
    return known


def last_unknown(d: Length, known: set[str]) -> str | None:
    """The one name in a length that is not known, where it is linear in that."""
    unknown = d.names - known
    if len(unknown) != 1:
        return None
    (name,) = unknown
    for monomial, _ in d.terms:
        inside = [atom for atom in monomial if name in names_in((atom,))]
        if len(inside) > 1 or any(atom.operation for atom in inside):
            return None
    return name


def _contradiction(axis: Axis, value: int, told: Mapping[str, Axis]) -> str:
    d, n, where = axis
    first = told[min(d.names & told.keys())]
    if d == first[0]:
        return f"length '{d}' is {first[1]} {first[2]}, and {n} {where}{REMEDY}"
    known = " and ".join(
        f"'{told[name][0]}' is {told[name][1]} {told[name][2]}"
        for name in sorted(d.names & told.keys())
    )
    return f"length '{d}' is {n} {where}, and {value} where {known}{REMEDY}"


def _kept_apart(axes: Iterable[Axis]) -> dict[str, Length]:
    """Other names for those that are solved for, where lengths that they are have names too."""
    axes = [axis for axis in axes if isinstance(axis[0], Length) and axis[1] is not None]
    if not any(isinstance(n, Length) for _, n, _ in axes):
        return {}
    return {name: Length(APART + name) for d, _, _ in axes for name in d.names}


def _solution(d: Length, n: Any, apart: bool) -> tuple[str, Any] | None:
    """The one name to solve for in a length, to the first power, and its value, None where no
    length is one; None: it is not that simple.

    apart: names that are solved for are those that begin so.
    """
    unknown = [
        (monomial, k)
        for monomial, k in d.terms
        if any(name.startswith(APART) or not apart for name in names_in(monomial))
    ]
    if len(unknown) != 1:
        return None
    ((monomial, k),) = unknown
    if len(monomial) != 1 or monomial[0].operation:
        return None
    (name,) = names_in(monomial)
    rest: Any = d - k * Length(name)
    if isinstance(n, int) and isinstance(rest, int):
        value, over = divmod(n - rest, k)
        return name, None if over or value < 0 else value
    if isinstance(n, int | Length):
        quotient = divided_exactly(n - rest, k)
        return None if quotient is None else (name, quotient)
    if (rest, k) == (0, 1):
        return name, n
    return name, None if (n - rest) % abs(k) != 0 else (n - rest) // k


class Assumption(NamedTuple):
    """What `gg.assume` stated of two lengths, and where."""

    left: Length | int
    sign: str
    right: Length | int
    where: str

    @property
    def excess(self) -> Any:
        """What is at least 0."""
        return Inequality(self.left, self.sign, self.right).excess

    @property
    def text(self) -> str:
        """`N >= 2`."""
        return f"{self.left} {self.sign} {self.right}"

    @classmethod
    def checked(cls, left: Any, sign: Any, right: Any, where: Any) -> Assumption:
        """One of a file; ShapeError for what states nothing."""
        sides = isinstance(left, Length | int) and isinstance(right, Length | int)
        if not (sides and sign in ("<", "<=", ">", ">=") and isinstance(where, str)):
            raise ShapeError(f"{left!r:.40} {sign!r:.40} {right!r:.40} does not compare lengths")
        return cls(left, sign, right, where)

    def check(self, sizes: Mapping[str, Any]) -> None:
        """ShapeError where it does not hold for these values of names, if they tell."""
        excess = self.excess.at(sizes) if isinstance(self.excess, Length) else self.excess
        if isinstance(excess, int) and excess < 0:
            names = sorted(self.excess.names) if isinstance(self.excess, Length) else ()
            known = " and ".join(f"{name} is {sizes[name]}" for name in names)
            raise ShapeError(
                f"gg.assume({self.text}), stated at {self.where}, does not hold: {known}"
            )
