"""Which function reads which operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from ....ir.op import op_types
from ..call import OperatorCall

__all__ = ["Form", "form", "form_of", "forms"]

Reader: TypeAlias = Callable[[OperatorCall], Any]


class Form(NamedTuple):
    """How an operator is read.

    read    takes an OperatorCall; returns what it makes, tensors or known arrays: all, or the first
    folded  whether it may be computed while loading where all that it reads is known
    """

    read: Reader
    folded: bool = True


_FORMS: dict[tuple[str, str], Form] = {}


def form(*names: str, domain: str = "", folded: bool = True) -> Callable[[Reader], Reader]:
    """The function reads the operators of these names."""

    def named(read: Reader) -> Reader:
        for name in names:
            assert (domain, name) not in _FORMS
            _FORMS[domain, name] = Form(read, folded)
        return read

    return named


def forms() -> dict[tuple[str, str], Form]:
    """All that are read: those of this folder, and what ops say of themselves."""
    table = {("", cls.onnx.name): Form(cls.from_onnx) for cls in _saying()}
    return {**table, **_FORMS}


def form_of(domain: str, name: str) -> Form | None:
    """How an operator is read; None where it is not."""
    entry = _FORMS.get((domain, name))
    if entry is None and domain == "":
        entry = next((Form(cls.from_onnx) for cls in _saying() if cls.onnx.name == name), None)
        if entry is not None:
            _FORMS[domain, name] = entry
    return entry


def _saying() -> list[Any]:
    """The op types that are an operator, and do not just inherit it."""
    return [cls for cls in op_types().values() if vars(cls).get("onnx") is not None]
