"""What op types say of themselves, in groups: what a subclass says joins what its bases say."""

from __future__ import annotations

from inspect import get_annotations
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np

from ..base.errors import did_you_mean
from ..base.position import caller, show


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=False)
class Facts:
    """A group of facts. It holds what is said; the rest is read from the class, the defaults."""

    names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.names = tuple(get_annotations(cls))

    def __init__(self, **said: Any) -> None:
        names = self.names
        if unknown := [name for name in said if name not in names]:
            hint = did_you_mean(unknown[0], names, f"It has {', '.join(names)}.")
            raise TypeError(f"{type(self).__name__} has no fact {unknown[0]!r}. {hint}")
        self.__dict__.update(said)

    @classmethod
    def defaults(cls) -> Self:
        """The group in which every default is said, so that it takes the place of a base's."""
        return cls(**{name: getattr(cls, name) for name in cls.names})

    def over(self, base: Self) -> Self:
        """These facts, and those of a base of which they say nothing."""
        facts = object.__new__(type(self))
        facts.__dict__.update({**vars(base), **vars(self)})
        return facts

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} never changes")

    def __repr__(self) -> str:
        own = {n: v for n, v in vars(self).items() if v != getattr(type(self), n)}
        return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in own.items())})"


class Traits(Facts):
    """What holds of the values that a kernel computes.

    commutes     x op y is y op x, bit for bit, of what is not complex
    mirror_type  the type of the op z for which x op y is y z x
    negated_type the type of the op z for which not (x op y) is x z y, where nothing is NaN
    idempotent   of its own output it makes the same, bit for bit, of real numbers
    involution   of its own output it makes its input
    rounds       it makes integers, and of integers themselves
    value_range  no element of a real output is outside of them, and none is -0.0 if the least is 0;
                 NaN may be
    reduction    what it reduces its input with, over `reduced_axes`: "sum" or "mean" (of floats and
                 integers), "prod", "max", "min", "any" or "all"
    stepwise     its gradient is zero wherever it is defined
    guards       arguments are made safe with it: it keeps them away from values at which an op is
                 singular
    of_format    it is about the format of its numbers: of bfloat16 it is not computed in float32

    >>> gg.op_types()["Multiply"].traits
    Traits(commutes=True)
    """

    commutes: bool = False
    mirror_type: str | None = None
    negated_type: str | None = None
    idempotent: bool = False
    involution: bool = False
    rounds: bool = False
    value_range: tuple[float, float] = (-np.inf, np.inf)
    reduction: str | None = None
    stepwise: bool = False
    guards: bool = False
    of_format: bool = False


class Memory(Facts):
    """How the outputs lie in the memory of the first input.

    view      the kernel may return its first input or a view of it
    alias     the kernel does nothing but look at how its first input lies in memory: each output is
              that, or a view of it; where this depends on the types, `aliases` is written
    reshapes  the elements of x in row-major order, under another shape

    >>> gg.op_types()["Transpose"].memory
    Memory(view=True, alias=True)
    """

    view: bool = False
    alias: bool = False
    reshapes: bool = False


class Derivative(Facts):
    """What is known of its gradient, beside where it is linear.

    linear_zero a gradient of zero gives gradients of zero, not NO_GRAD or an error
    sparse      its vjp is given None for an output without a gradient, not a structural zero
    jumps       inputs, by place, in which it is a step function: their gradient is ZERO
    singular    the input, by place, at some values of which it has no finite value or slope
    withholds   its gradient is none, or zero, on purpose: it is not that of its value
    relevance   how its inputs share relevance: "moved" with the elements, which all are elements
                of an input or constants; "passed" on by what is zero at zero, or an established
                activation; by the first order of a "taylor" series; else as linear maps do

    >>> gg.op_types()["Log1p"].derivative
    Derivative(singular=0, relevance='passed')
    """

    linear_zero: bool = True
    sparse: bool = False
    jumps: tuple[int, ...] = ()
    singular: int | None = None
    withholds: bool = False
    relevance: str | None = None


GROUPS: dict[str, type[Facts]] = {"traits": Traits, "memory": Memory, "derivative": Derivative}
"""The groups, by the attribute of an op type that holds them."""

GROUP_OF = {name: attr for attr, group in GROUPS.items() for name in group.names}
"""fact -> the attribute of an op type that holds its group."""


def said_by(cls: Any) -> dict[str, Facts]:
    """What a class itself says of each group; TypeError where it says a fact outside its group."""
    said = {attr: vars(cls)[attr] for attr in GROUPS if attr in vars(cls)}
    for attr, facts in said.items():
        if type(facts) is not GROUPS[attr]:
            raise TypeError(
                f"{cls.__name__} ({show(caller())}) has {facts!r} as {attr}, which is a "
                f"{GROUPS[attr].__name__}(...): the same for all ops of a type"
            )
    if flat := GROUP_OF.keys() & {*vars(cls), *cls.fields}:
        raise TypeError(_in_groups(cls, [n for n in GROUP_OF if n in flat]))
    return said


def _in_groups(cls: Any, flat: list[str]) -> str:
    """The error for facts that a class says outside their groups, with what to write."""
    said: dict[str, list[str]] = {}
    for name in flat:
        value = vars(cls).get(name, ...)
        shown = "..." if value is ... or hasattr(value, "__get__") else repr(value)
        said.setdefault(GROUP_OF[name], []).append(f"{name}={shown}")
    groups = [GROUPS[attr].__name__ for attr in said]
    lines = [f"\n    {attr} = {GROUPS[attr].__name__}({', '.join(said[attr])})" for attr in said]
    return (
        f"{cls.__name__} ({show(caller())}) says {', '.join(flat)} outside of a group. "
        f"Write{''.join(lines)}\n"
        f"with `from graphgrad.extend import {', '.join(groups)}`; an attribute or a method needs "
        "another name."
    )


def joined(cls: Any, attr: str) -> Facts:
    """What a class and its bases say of a group, each over those behind it."""
    facts = GROUPS[attr]()
    for base in reversed(cls.__mro__):
        own = vars(base).get("_said")
        if own and attr in own:
            facts = own[attr].over(facts)
    return facts
