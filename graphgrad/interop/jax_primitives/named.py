"""The functions of jax.nn, found among the equations that they were traced as."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
from jax.extend import core

from ...ir.node import Tensor
from ..opened import gg

__all__ = ["NamedCall", "named_at"]

_JAX: Any = jax
_CORE: Any = core
_FILE = "nn/functions.py"


class Candidate(NamedTuple):
    """A function of jax.nn with all its options, and ours that computes the same."""

    theirs: Callable[[Any], Any]
    ours: Callable[[Any], Tensor]


class NamedCall(NamedTuple):
    """Equations that are one function: how many, and of which variable."""

    theirs: str
    length: int
    variable: Any
    ours: Callable[[Any], Tensor]


def _as_it_is(name: str, shape: Sequence[Any]) -> Iterator[Candidate]:
    yield Candidate(getattr(_JAX.nn, name), getattr(gg.nn, _OURS.get(name, name)))


def _along_axes(name: str, shape: Sequence[Any]) -> Iterator[Candidate]:
    for axis in range(-1, -len(shape) - 1, -1):
        if name == "glu" and shape[axis] % 2 != 0:
            continue
        yield Candidate(
            partial(getattr(_JAX.nn, name), axis=axis), partial(getattr(gg.nn, name), axis=axis)
        )


def _gelu(name: str, shape: Sequence[Any]) -> Iterator[Candidate]:
    for how in (True, False):
        yield Candidate(
            partial(_JAX.nn.gelu, approximate=how), partial(gg.nn.gelu, approximate=how)
        )


_SAME_NAME = """
    relu relu6 silu swish elu selu celu leaky_relu softplus soft_sign log_sigmoid hard_tanh
    hard_sigmoid hard_silu hard_swish mish squareplus sparse_plus sparse_sigmoid log1mexp
"""
_OURS = {"swish": "silu", "hard_swish": "hard_silu"}
NAMED: dict[str, Callable[[str, Sequence[Any]], Iterator[Candidate]]] = {
    **dict.fromkeys(_SAME_NAME.split(), _as_it_is),
    **dict.fromkeys(("softmax", "log_softmax", "glu"), _along_axes),
    "gelu": _gelu,
}

_traced: dict[Any, list[tuple[Candidate, list[Any], Any]]] = {}


def named_at(
    eqns: Sequence[Any], i: int, read_later: Callable[[Any, int], bool]
) -> NamedCall | None:
    """The function that the equations from here on are, if they are one.

    read_later: whether a variable is read by an equation from a place on, or is an output.
    """
    name = _function_of(eqns[i])
    if name not in NAMED:
        return None
    variable = next((v for v in eqns[i].invars if not isinstance(v, _CORE.Literal)), None)
    if variable is None or not hasattr(variable.aval, "shape"):
        return None
    for candidate, wanted, given in _forms(name, variable.aval):
        count = len(wanted)
        window = eqns[i : i + count]
        if len(window) < count or _words(window, variable) != given:
            continue
        inside = [v for eqn in window for v in eqn.outvars][:-1]
        if not any(read_later(v, i + count) for v in inside):
            return NamedCall(f"jax.nn.{name}", count, variable, candidate.ours)
    return None


def _function_of(eqn: Any) -> str:
    """The outermost function of jax.nn that an equation was traced in."""
    if eqn.primitive.name == "custom_jvp_call":
        info = getattr(eqn.params["call_jaxpr"].jaxpr, "debug_info", None)
        if info is not None and _FILE in str(info.func_src_info).replace("\\", "/"):
            return str(info.func_name)
    traceback = eqn.source_info.traceback
    name = ""
    for frame in traceback.frames if traceback is not None else ():
        if frame.file_name.replace("\\", "/").endswith(_FILE):
            name = frame.function_name
    return name


def _forms(name: str, aval: Any) -> list[tuple[Candidate, list[Any], Any]]:
    """What each candidate is traced as, for a tensor of this type."""
    key = name, aval.shape, aval.dtype, getattr(aval, "weak_type", False)
    known = _traced.get(key)
    if known is None:
        known = []
        for candidate in NAMED[name](name, aval.shape):
            closed = _JAX.make_jaxpr(candidate.theirs)(
                _JAX.ShapeDtypeStruct(aval.shape, aval.dtype)
            )
            jaxpr = closed.jaxpr
            words = _words(jaxpr.eqns, jaxpr.invars[0])
            known.append((candidate, list(jaxpr.eqns), words))
        _traced[key] = known
    return known


def _words(eqns: Sequence[Any], variable: Any) -> Any:
    """Equations with their variables numbered: equal for equal programs of one variable."""
    numbers = {variable: 0}
    rows = []
    for eqn in eqns:
        read: list[Any] = []
        for atom in eqn.invars:
            if isinstance(atom, _CORE.Literal):
                read.append(("literal", str(atom.val), str(atom.aval)))
            else:
                read.append(("variable", numbers.get(atom, -1), ""))
        for v in eqn.outvars:
            numbers[v] = len(numbers)
        params = [(k, _said(v)) for k, v in sorted(eqn.params.items())]
        rows.append((eqn.primitive.name, read, params, [str(v.aval) for v in eqn.outvars]))
    return rows


def _said(value: Any) -> str:
    """A parameter in words; functions are told by the programs beside them."""
    if hasattr(value, "jaxpr"):
        inner = value.jaxpr
        words = [_words(inner.eqns, v) for v in inner.invars[:1]]
        return repr(words)
    return "" if callable(value) and not isinstance(value, type) else str(value)
