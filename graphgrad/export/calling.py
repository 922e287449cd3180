"""How a kernel is called."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from inspect import CO_VARARGS
from typing import Any

import numpy as np

from ..ir.op import Op, Types
from .known import Local

__all__ = ["arguments", "input_names", "is_operator", "kernel_of"]


def kernel_of(op: Op) -> Any:
    """The function of its class."""
    return type(op).kernel


def arguments(op: Op, types: Types) -> dict[str, Any]:
    """What a kernel's parameters are: the op, NumPy, and inputs by the names they have there."""
    kernel, code = kernel_of(op), kernel_of(op).__code__
    names = code.co_varnames[: code.co_argcount]
    defaults = kernel.__defaults__ or ()
    bound: dict[str, Any] = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    values = [Local(n, t) for n, t in zip(input_names(op, len(types)), types, strict=True)]
    bound |= dict(zip(names, (op, np, *values)))
    if code.co_flags & CO_VARARGS:
        star = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
        bound[star] = tuple(values[len(names) - 2 :])
    return bound | (kernel.__kwdefaults__ or {})


def input_names(op: Op, count: int) -> list[str]:
    """The names of a kernel's inputs; of `*xs` they are xs_0, xs_1 and so on."""
    code = kernel_of(op).__code__
    names = list(code.co_varnames[2 : code.co_argcount])
    if code.co_flags & CO_VARARGS:
        star = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
        names += [f"{star}_{i}" for i in range(count - len(names))]
    return names[:count]


def is_operator(expression: ast.expr) -> bool:
    """Whether it is one operator or ufunc of inputs."""
    if isinstance(expression, ast.BinOp):
        parts: Sequence[ast.expr] = (expression.left, expression.right)
    elif isinstance(expression, ast.Compare):
        parts = (expression.left, *expression.comparators)
    elif isinstance(expression, ast.Call) and not expression.keywords:
        called = getattr(np, ast.unparse(expression.func).removeprefix("np."), None)
        parts = expression.args if isinstance(called, np.ufunc) else ()
    else:
        return False
    return bool(parts) and all(isinstance(p, ast.Name) for p in parts)
