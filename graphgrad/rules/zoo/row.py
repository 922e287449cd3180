"""What a row is: its function, what is said of it, and what follows from its annotations.

What comes before the parameters are tensors; a parameter's type is its domain.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from inspect import Parameter, Signature, cleandoc, getmodule, getsourcelines, signature
from types import ModuleType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeAlias,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from ...base.domains import (
    BITS,
    FINITE,
    FROM_ONE,
    FROM_ZERO,
    INTEGER,
    NON_NEGATIVE,
    NON_NEGATIVE_OR_INFINITE,
    POSITIVE,
    POSITIVE_OR_INFINITE,
    PROBABILITY,
    Domain,
)
from ...base.errors import DTypeError, GradientError, ShapeError
from ...base.flags import function, truth
from ...base.position import caller, show
from ...ir.node import Tensor
from ...ops.base import TensorLike, as_tensor, like
from ...ops.demands import within
from ...ops.sources import identity
from ...regions.contracts import Contract
from ...regions.rules import Rule
from ..entries import Entry, listed, rule
from .glossary import EXAMPLES, WORDS
from .needs import AS_TAKEN, ORDERED, WITHOUT_LAST, Gives, Need, ShapedFunction, shapes

Fn: TypeAlias = Callable[..., Any]

Finite = Annotated[float | Tensor, FINITE]
Positive = Annotated[float | Tensor, POSITIVE]
PositiveOrInfinite = Annotated[float | Tensor, POSITIVE_OR_INFINITE]
NonNegative = Annotated[float | Tensor, NON_NEGATIVE]
Number = Annotated[float, FINITE]
Size = Annotated[float, POSITIVE]
Bound = Annotated[float, NON_NEGATIVE_OR_INFINITE]
Bits = Annotated[int, BITS]
Integer = Annotated[int, INTEGER]
Axis = Annotated[int, INTEGER]
Count = Annotated[int, FROM_ONE]
Places = Annotated[int, FROM_ZERO]
Levels = Annotated[Sequence[int], Domain(2, whole=True)]
Function: TypeAlias = Fn
Solver = Annotated[Fn, AS_TAKEN]
Loss = Annotated[Fn, WITHOUT_LAST]
FiniteTensor = Annotated[Tensor, FINITE]
PositiveTensor = Annotated[Tensor, POSITIVE]
Draw = Annotated[Tensor, "drawn"]
"""An input that is a sample, noise or a target: it gets no gradient."""

SHOWN: Any = (TensorLike, Sequence, Callable)
"""What annotations that users see are made of."""

Sums = Annotated[Tensor, "drawn", NON_NEGATIVE]
Uniform = Annotated[Tensor, "drawn", PROBABILITY]
"""Draws of a domain: that they are of it is asked, too."""


class RowNotes(TypedDict, total=False):
    """What may be said of a row.

    traps    where packages differ from the paper or from each other
    needs    what has to hold of what it is given
    on       the types of the ops that it may stand on; of several ops anything
    reduces  whether its site is a reduction along `axis`
    """

    traps: str
    needs: tuple[Need | shapes, ...]
    on: tuple[str, ...]
    reduces: bool


NAMED = (DTypeError, GradientError, ShapeError, TypeError, ValueError)
BUILDS = "Tensor"
SEVERAL = "tuple[Tensor, ...]"


class ZooRow:
    """One row of the zoo.

    form      what the formula says of what the function gives
    operands  the names of its tensors; drawn: which of them get no gradient
    builds    what is built, as a type; None: it makes a rule
    said      what its table says besides
    needs     what has to hold of what it is given; of what has ends, their order
    """

    def __init__(
        self, fn: Fn, source: str, said: RowNotes, form: str, first: int, builds: str | None
    ) -> None:
        hints = get_type_hints(fn, include_extras=True)
        given = list(signature(fn).parameters.values())[first:]
        self.fn = fn
        self.name = fn.__name__
        self.source = source
        self.said = said
        self.traps = said.get("traps", "")
        self.form = form
        self.builds = builds
        self.hints = {p.name: hints.get(p.name, Tensor) for p in given}
        self.operands = [p.name for p in given if _is_tensor(self.hints[p.name])]
        self.drawn = ["drawn" in _marks(self.hints[name]) for name in self.operands]
        needs = said.get("needs", ())
        self.needs = (*needs, ORDERED) if {"low", "high"} <= self.hints.keys() else needs
        shown = given if builds else [p for p in given if p.name not in self.operands]
        self.signature = Signature(
            [p.replace(annotation=_shown(self.hints[p.name])) for p in shown],
            return_annotation=builds or "Rule",
        )

    def bound(self, args: Any, kwargs: Any) -> dict[str, Any]:
        """What a call gives for each name; TypeError with the signature."""
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}(): {error}; it is {self.name}{self.signature}") from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def split(
        self, given: dict[str, Any], also: dict[str, Any] | None = None
    ) -> tuple[list[Tensor], dict[str, Any]]:
        """The tensors, in the dtype of the first where they are mere numbers; the parameters.

        also  what needs may read besides
        """
        tensors: list[Tensor] = []
        checked = dict(also or {})
        for name, value in given.items():
            if name not in self.operands:
                checked[name] = _within(self.hints[name], name, value)
            elif value is not None:
                follows = tensors and not hasattr(value, "dtype")
                made = like(value, tensors[0]) if follows else as_tensor(value)
                domain = domain_of(self.hints[name])
                made = made if domain is None else within(domain, name, made)
                tensors.append(identity(made) if any(made is t for t in tensors) else made)
                checked[name] = tensors[-1]
        for need in self.needs:
            need.check(checked)
        places = [checked[name] for name in self.operands if name in checked]
        return places, {name: checked[name] for name in given if name not in self.operands}

    def rule(self, fn: Fn, parameters: dict[str, Any], contract: Contract | None = None) -> Rule:
        """A rule of this row."""
        return rule(fn, contract, listed=self.name, **parameters)

    def public(self, make: Fn, contract: str, linear: bool) -> Any:
        """The function that users call; make takes what a call gives for each name."""

        def called(*args: Any, **kwargs: Any) -> Any:
            given = self.bound(args, kwargs)
            with Naming(self.name, lambda: self._asked(given)):
                return make(given)

        called.__name__ = called.__qualname__ = self.name
        called.__module__ = self.fn.__module__
        called.__signature__ = self.signature  # type: ignore[attr-defined]
        types = {n: p.annotation for n, p in self.signature.parameters.items()}
        called.__annotations__ = {**types, "return": self.signature.return_annotation}
        called.__doc__ = self.document()
        listed(RowEntry(called, self, contract, linear))
        return called

    def _asked(self, given: dict[str, Any]) -> str:
        """The types of the tensors of a call, and its line."""
        types = [
            f"{name}: {value.dtype}{list(value.shape)}, "
            for name, value in given.items()
            if name in self.operands and hasattr(value, "dtype")
        ]
        return f"{''.join(types)}{show(caller())}"

    def document(self) -> str:
        """The docstring."""
        lines = [cleandoc(self.fn.__doc__ or ""), "", f"[{self.source}].", ""]
        if self.traps:
            lines += [f"Where packages differ: {self.traps}.", ""]
        if self.signature.parameters:
            lines += ["Parameters:", *map(self._of_parameter, self.signature.parameters), ""]
        lines += [f"Returns: {self._returned()}.", "", f"Raises: {self._raised()}.", ""]
        needed = [
            EXAMPLES.get(f"{self.name} {n}", EXAMPLES.get(n, "1.0"))
            if p.kind is not Parameter.KEYWORD_ONLY
            else f"{n}={EXAMPLES.get(n, '1.0')}"
            for n, p in self.signature.parameters.items()
            if p.default is Parameter.empty
        ]
        made = f"gg.rules.{self.name}({', '.join(needed)})"
        return "\n".join([*lines, f">>> {'made' if self.builds else 'rule'} = {made}", ""])

    def _returned(self) -> str:
        if self.builds:
            return "a tensor" if self.builds == BUILDS else "a tuple of tensors"
        places = len(self.operands)
        site = "any site" if "d" in self.operands else f"a site of {places} inputs"
        return f"a rule for {site if places > 1 or 'd' in self.operands else 'one floating input'}"

    def _raised(self) -> str:
        what = (
            "RegionError if no input is floating"
            if self.builds
            else "GradientError at another site"
        )
        return f"TypeError or ValueError for a parameter outside its domain; {what}"

    def _of_parameter(self, name: str) -> str:
        stars = "*" * (self.signature.parameters[name].kind is Parameter.VAR_POSITIONAL)
        said = WORDS.get(f"{self.name} {name}", WORDS.get(name, "a parameter of the formula"))
        return f"    {stars}{name}: {said}{_in_words(self.hints[name])}."


class Naming:
    """What is raised within says of which rule it is, and where that stands."""

    def __init__(self, name: str, place: Callable[[], str]) -> None:
        self.name = name
        self.place = place

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, _: Any) -> None:
        said = str(error)
        if kind in NAMED and f"{self.name}(" not in said:
            place = "" if self.place() in said else f" ({self.place()})"
            raise kind(f"{self.name}(): {said}{place}") from error


class RowEntry(Entry):
    """A row in the library: what it says comes from the row.

    traps  where packages differ from the paper or from each other
    """

    def __init__(self, make: Fn, row: ZooRow, contract: str, linear: bool) -> None:
        super().__init__(make, row.fn.__globals__["FAMILY"], contract, linear)
        self.row = row
        self.traps = row.traps

    @property
    def formula(self) -> str:
        """What the row's function computes, as it is written."""
        tree = _tree(getmodule(self.row.fn))
        (body,) = [
            n.body
            for n in tree.body
            if isinstance(n, ast.FunctionDef) and n.name == self.row.fn.__name__
        ]
        said = "; ".join(" ".join(ast.unparse(n).split()) for n in body[1:])
        return self.row.form + re.sub(r"\bm\.|\breturn ", "", said)

    @property
    def source(self) -> str:
        """Where it was published."""
        return self.row.source


@cache
def _tree(module: ModuleType | None) -> ast.Module:
    assert module is not None
    return ast.parse("".join(getsourcelines(module)[0]))


# --- what annotations say ---------------------------------------------------------------------


def bare(hint: Any) -> Any:
    """A hint without None."""
    if get_origin(hint) in (Union, UnionType):
        kept = [h for h in get_args(hint) if h is not type(None)]
        return kept[0] if len(kept) == 1 else hint
    return hint


def _is_tensor(hint: Any) -> bool:
    hint = bare(hint)
    return hint is Tensor or (get_origin(hint) is Annotated and hint.__origin__ is Tensor)


def _marks(hint: Any) -> tuple[Any, ...]:
    hint = bare(hint)
    return hint.__metadata__ if get_origin(hint) is Annotated else ()


def domain_of(hint: Any) -> Domain | None:
    """The domain that a parameter's annotation says."""
    return next((mark for mark in _marks(hint) if isinstance(mark, Domain)), None)


def _shown(hint: Any) -> str:
    """A hint as users see it."""
    none = "" if hint is bare(hint) else " | None"
    hint = bare(hint)
    if _is_tensor(hint):
        return f"TensorLike{none}"
    if get_origin(hint) is Literal:
        return f"str{none}"
    kind = hint.__origin__ if get_origin(hint) is Annotated else hint
    said = kind.__name__ if isinstance(kind, type) else str(kind)
    return re.sub(r"\b(?:\w+\.)+(\w)", r"\1", said) + none


def _within(hint: Any, name: str, value: Any) -> Any:
    """A parameter that is of its domain."""
    if value is None and hint is not bare(hint):
        return None
    hint, domain = bare(hint), domain_of(hint)
    if domain is not None:
        kind = hint.__origin__
        if get_origin(kind) not in (None, UnionType):
            if not isinstance(value, Iterable):
                raise TypeError(f"{name} is several, each {domain}, got {value!r}")
            return tuple(domain(name, v) for v in value)
        return domain(name, value) if kind in (int, float) else within(domain, name, value)
    if hint is bool:
        return truth(name, value)
    if get_origin(hint) is Literal:
        return _one_of(name, value, get_args(hint))
    gives = next((mark for mark in _marks(hint) if isinstance(mark, Gives)), None)
    return ShapedFunction(name, function(name, value), gives) if gives else function(name, value)


def _one_of(name: str, value: Any, values: tuple[str, ...]) -> Any:
    if not isinstance(value, str) or value not in values:
        raise ValueError(f"{name} is one of {', '.join(map(repr, values))}, got {value!r}")
    return value


def _in_words(hint: Any) -> str:
    """What follows the words for a parameter: its domain."""
    none, domain = "" if hint is bare(hint) else ", or None", domain_of(hint)
    hint = bare(hint)
    if domain is not None:
        each = "each " if "Sequence" in str(hint) else ""
        return f", {each}{domain}{' (or a tensor)' if 'Tensor' in _shown(hint) else ''}{none}"
    if get_origin(hint) is Literal:
        return f", one of {', '.join(map(repr, get_args(hint)))}{none}"
    return none
