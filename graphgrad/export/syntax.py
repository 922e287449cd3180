"""Trees of Python source: definitions, names, parameters."""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

from .layout import docstring

__all__ = [
    "Clash",
    "Refused",
    "all_parameters",
    "first_paragraph",
    "free_names",
    "has_own_names",
    "names_set",
    "once",
    "own_names",
    "parameters",
    "parsed",
    "settings",
    "source",
    "substituted",
    "unannotate",
    "without_doc",
]


class Refused(Exception):
    """What a kernel does cannot be written down; the text says why."""


class Clash(Exception):
    """Names of open lengths that mean something else in a kernel."""

    def __init__(self, names: set[str]) -> None:
        super().__init__(names)
        self.names = names


def names_set(tree: ast.AST) -> set[str]:
    """The names that are set somewhere in it, parameters included."""
    return {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)} | {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
    }


def parsed(text: str) -> ast.expr:
    """The expression of a text."""
    return ast.parse(text, mode="eval").body


@cache
def _text(thing: Any) -> str:
    try:
        return textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError):
        raise Refused(f"the source of {thing.__qualname__} cannot be read") from None


def source(thing: Any) -> ast.stmt:
    """The definition of a function or class; a tree of the caller's own."""
    return ast.parse(_text(thing)).body[0]


def without_doc(body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements without a docstring."""
    first = body[0] if body else None
    is_doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if is_doc else body


def first_paragraph(doc: str | None) -> str:
    """That of a docstring, as one of a function of the file."""
    return docstring(inspect.cleandoc(doc).split("\n\n")[0]) if doc else ""


def unannotate(tree: ast.FunctionDef) -> None:
    """Without annotations of its parameters and result."""
    tree.returns = None
    for node in ast.walk(tree.args):
        if isinstance(node, ast.arg):
            node.annotation = None


def all_parameters(tree: ast.FunctionDef) -> list[ast.arg]:
    """The parameters, in order."""
    a = tree.args
    return [p for p in (*a.posonlyargs, *a.args, a.vararg, *a.kwonlyargs, a.kwarg) if p]


def parameters(tree: ast.FunctionDef) -> set[str]:
    """Their names."""
    return {p.arg for p in all_parameters(tree)}


def once(settings: list[str]) -> set[str]:
    """The names that are set once."""
    return {name for name, times in Counter(settings).items() if times == 1}


def settings(body: list[ast.stmt]) -> list[str]:
    """The names that are set, as often as they are."""
    names: list[str] = []
    pending: list[ast.AST] = list(body)
    for node in pending:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
        elif isinstance(node, ast.FunctionDef):
            names += [node.name, *parameters(node)]
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.append(node.name)
        if isinstance(node, ast.comprehension):
            pending.append(node.iter)  # its names are its own
        elif not isinstance(node, ast.Name | ast.Constant | ast.expr_context):
            pending.extend(ast.iter_child_nodes(node))
    return names


def free_names(node: ast.AST) -> set[str]:
    """The names that an expression reads from around it."""
    names: set[str] = set()
    pending: list[tuple[ast.AST, frozenset[str]]] = [(node, frozenset())]
    for each, own in pending:
        if isinstance(each, ast.Name):
            if each.id not in own:
                names.add(each.id)
            continue
        inner = own | own_names(each)
        pending.extend((child, inner) for child in ast.iter_child_nodes(each))
    return names


def own_names(node: ast.AST) -> set[str]:
    """The names that a comprehension or lambda has for itself."""
    if isinstance(node, ast.Lambda):
        return {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
    generators = getattr(node, "generators", ())
    return {n.id for g in generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}


def has_own_names(expression: ast.expr) -> bool:
    """Whether a lambda or comprehension in it has names, which others might be taken for."""
    kinds = ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
    return any(isinstance(n, kinds) for n in ast.walk(expression))


class _Substituting(ast.NodeTransformer):
    def __init__(self, parts: Mapping[str, ast.expr]) -> None:
        self._parts = parts

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """What stands in its place."""
        return copy.deepcopy(self._parts.get(node.id, node))


def substituted(expression: ast.expr, parts: Mapping[str, ast.expr]) -> ast.expr:
    """The expression with others in place of names."""
    tree: ast.expr = _Substituting(parts).visit(copy.deepcopy(expression))
    return tree
