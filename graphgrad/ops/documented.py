"""Docstrings of public functions, completed by what the op type that they build says of itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from ..ir.op import Op

__all__ = ["documented", "sections"]

OF_OPS = ("Parameters", "Returns", "Raises", "Gradient")
HEADINGS = (*OF_OPS, "Source")
OWN = re.compile(r"\n\n *(Parameters|Returns|Raises|Gradient|Source):")
INDENT = re.compile(r"\n( *)\S")

Function = TypeVar("Function", bound=Callable[..., object])


def documented(op: type[Op]) -> Callable[[Function], Function]:
    """Complete the docstring of a function that builds this op.

    A section that the function has itself stays; one that it lacks is that of the op type, or of
    the family that the op type is of: `Gradient` above all.

    Parameters: op: the op type.

    Returns: a decorator, which returns the function that it is given.

    >>> @gg.extend.documented(gg.op_types()["Exp"])
    ... def exponential(x):
    ...     '''e**x.
    ...
    ...     >>> exponential(0.0)
    ...     '''
    >>> "Gradient: dx = dy * y" in exponential.__doc__
    True
    """

    def complete(function: Function) -> Function:
        if function.__doc__ is not None:  # python -OO leaves none
            text, prompt, example = function.__doc__.partition(">>>")
            body = text.rstrip()
            summary, *own = OWN.split(body)
            told = sections(op) | dict(zip(own[::2], own[1::2], strict=True))
            parts = [f"{heading}:{told[heading]}" for heading in HEADINGS if heading in told]
            parts += [prompt + example] if prompt else []
            indent = INDENT.search(f"{function.__doc__}{Op.__doc__}")  # the op's, of one line alone
            end = "" if prompt else text[len(body) :]
            function.__doc__ = f"\n\n{indent[1] if indent else ''}".join([summary, *parts]) + end
        return function

    return complete


def sections(op: type[Op]) -> dict[str, str]:
    """Heading -> what stands under it, in the docstring of an op type or of its families."""
    told: dict[str, str] = {}
    for cls in reversed(op.__mro__):
        told |= _own_sections(cls)
    return told


@cache
def _own_sections(cls: type) -> dict[str, str]:
    told = {}
    for paragraph in (vars(cls)["__doc__"] or "").split("\n\n"):
        for heading in OF_OPS:
            _, colon, text = paragraph.partition(f"{heading}:")
            if colon:
                told[heading] = text.rstrip()
    return told
