"""What the user's function calls the leaves of its arguments: `h` and `c` of a carry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from types import CodeType, MethodType
from typing import Any

from ...base.lazy import lazy_module
from ...base.position import is_library
from ...base.tree import children_of
from ...ir.node import Tensor
from ...ir.op import OP_TYPES

dis: Any = lazy_module("dis")


def names_of(f: Callable[..., Any], args: Sequence[Any]) -> list[str]:
    """A name for each leaf of the arguments, in the order of flatten; "" where it has none.

    That of the parameter; in a dict or named tuple that of the key or field; in a tuple that the
    function takes apart, as in `h, c = carry`, that of the variable.
    """
    code, parameters = _code_of(f)
    names = parameters[: len(args)] + [""] * (len(args) - len(parameters))
    return [
        found if found.isidentifier() and not _is_of_op(found) else ""
        for name, arg in zip(names, args, strict=True)
        for found in _leaves(name, arg, code)
    ]


def give_names(tensors: Sequence[Tensor], names: Sequence[str]) -> None:
    """Name new placeholders of a body; those without a name stay as they are.

    names: of all, or none at all.
    """
    for t, name in zip(tensors, names, strict=False):
        if name:
            node = t.node
            assert node.graph is not None
            node._name = node.graph.claim_name(node.scope, name, node)


def _code_of(f: Any) -> tuple[CodeType | None, list[str]]:
    """The code of a user's function with the parameters that it is called by; else none."""
    bound = isinstance(f, MethodType)
    code = getattr(f.__func__ if bound else f, "__code__", None)
    if not isinstance(code, CodeType) or is_library(code.co_filename):
        return None, []
    return code, list(code.co_varnames[int(bound) : code.co_argcount])


def _leaves(name: str, arg: Any, code: CodeType | None) -> Iterator[str]:
    """Names of the leaves of one argument."""
    children = children_of(arg)
    if children is None:
        yield name
        return
    names = [str(key) for key, _ in children]
    if isinstance(arg, list | tuple) and not hasattr(arg, "_fields"):
        names = [""] * len(children)
        if code is not None and name:
            names = _taken_apart(code, name, len(children)) or names
    for inner, (_, child) in zip(names, children, strict=True):
        yield from _leaves(inner, child, None)


@lru_cache(maxsize=256)
def _taken_apart(code: CodeType, name: str, count: int) -> list[str]:
    """`["h", "c"]` where the code says `h, c = name`; [] where it does not, or not so plainly."""
    steps = list(dis.get_instructions(code))
    for i, step in enumerate(steps[:-1]):
        reads = step.opname.startswith("LOAD_FAST") and step.argval == name
        if reads and steps[i + 1].opname == "UNPACK_SEQUENCE" and steps[i + 1].arg == count:
            return _stored(steps[i + 2 :], count)
    return []


def _stored(steps: Sequence[Any], count: int) -> list[str]:
    """The variables that the next instructions store, if they do nothing else."""
    names: list[str] = []
    for step in steps:
        if len(names) >= count or not step.opname.startswith("STORE_FAST"):
            break
        names += step.argval if isinstance(step.argval, tuple) else [step.argval]
    return names if len(names) == count else []


def _is_of_op(name: str) -> bool:
    """Whether it is what an unnamed node would be called: `Add_0`."""
    base, _, number = name.rpartition("_")
    return name in OP_TYPES or (base in OP_TYPES and number.isdecimal())
