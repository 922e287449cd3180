"""A kernel without what cannot happen for one op."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import numpy as np

from ..base.length import Length
from .known import FALSE_HERE, KernelNames, NotKnown, is_local
from .syntax import own_names, unannotate, without_doc

__all__ = ["Pruner", "Visitor"]


class Visitor(ast.NodeTransformer):
    """What the two visitors share: blocks of statements in which dead ones go."""

    def __init__(self, scope: KernelNames) -> None:
        self.scope = scope

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements, up to the first that leaves."""
        done: list[ast.stmt] = []
        for statement in body:
            made = self.visit(statement)
            done.extend(made if isinstance(made, list) else [made] if made is not None else [])
            if done and isinstance(done[-1], ast.Return | ast.Raise):
                break
        return done

    def known(self, node: ast.expr) -> Any:
        """The value of an expression; NotKnown."""
        return self.scope.known(node)

    def visit_If(self, node: ast.If) -> Any:
        """One of its blocks, where the test is known."""
        node.test = self.visit(node.test)
        try:
            chosen = node.body if self.known(node.test) else node.orelse
        except NotKnown:
            node.body, node.orelse = self.statements(node.body), self.statements(node.orelse)
            return node if node.body or node.orelse else None
        return self.statements(chosen)

    def visit_For(self, node: ast.For) -> Any:
        """A loop."""
        node.iter = self.visit(node.iter)
        node.body = self.statements(node.body)
        return node

    def visit_While(self, node: ast.While) -> Any:
        """A loop."""
        node.test = self.visit(node.test)
        node.body = self.statements(node.body)
        return node

    def visit_With(self, node: ast.With) -> Any:
        """What stands in a block."""
        self.generic_visit(node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """An inner function, whose names are moving all around it."""
        unannotate(node)
        node.body = self.statements(without_doc(node.body))
        return node

    def visit_Assert(self, node: ast.Assert) -> None:
        """Nothing: it is for those who read types."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """Without the annotation."""
        if node.value is None:
            return None
        assign = ast.Assign([node.target], node.value)
        return self.visit(ast.fix_missing_locations(ast.copy_location(assign, node)))

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        """With names of its own."""
        return self._inside(node)

    visit_GeneratorExp = visit_ListComp = visit_SetComp = visit_DictComp = visit_Lambda  # type: ignore[assignment]

    def _inside(self, node: Any) -> Any:
        before = self.scope
        self.scope = before.without(own_names(node))
        try:
            self.generic_visit(node)
        finally:
            self.scope = before
        return node


class Pruner(Visitor):
    """Leaves out what cannot happen, and names that are set once, to what is known."""

    def __init__(self, scope: KernelNames, once: set[str]) -> None:
        super().__init__(scope)
        self._once = once

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """The part that is chosen, where that is known."""
        self.generic_visit(node)
        try:
            return node.body if self.known(node.test) else node.orelse
        except NotKnown:
            pass
        try:
            same = self.known(node.body) is self.known(node.orelse)
        except NotKnown:
            return node
        return node.body if same else node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """Without parts that decide nothing; False where one is."""
        self.generic_visit(node)
        decided = isinstance(node.op, ast.Or)
        left: list[ast.expr] = []
        for part in node.values:
            try:
                if bool(self.known(part)) is decided:
                    if not left:
                        return part
                    left.append(part)
                    break
            except NotKnown:
                left.append(part)
        if not left:
            return node.values[-1]
        node.values = left
        return node if len(left) > 1 else left[0]

    def visit_Compare(self, node: ast.Compare) -> Any:
        """`x is None` is False of an array."""
        self.generic_visit(node)
        if isinstance(node.ops[0], ast.Is | ast.IsNot) and isinstance(node.left, ast.Name):
            value = self.scope.bound.get(node.left.id)
            if is_local(value) and isinstance(node.comparators[0], ast.Constant):
                return ast.Constant(isinstance(node.ops[0], ast.IsNot))
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        """What NumPy's arrays always answer with no; no value is a Length where the file runs."""
        self.generic_visit(node)
        try:
            called = self.known(node.func)
            if called is isinstance and self.known(node.args[1]) is Length:
                return ast.Constant(False)
        except NotKnown:
            return node
        return ast.Constant(False) if _hashed(called) and called in FALSE_HERE else node

    def visit_Assign(self, node: ast.Assign) -> Any:
        """Nothing for `x = x`, or for a name that is set to what is known and never again."""
        self.generic_visit(node)
        target = node.targets[0]
        if not isinstance(target, ast.Name):
            return node
        if isinstance(node.value, ast.Name) and node.value.id == target.id:
            return None
        if target.id in self._once:
            try:
                value = self.known(node.value)
            except NotKnown:
                return node
            if _stays(value):
                self.scope.bound[target.id] = value
                return None
        return node


def _stays(value: Any) -> bool:
    """Whether it can be had again and again, and nobody changes it."""
    return is_local(value) or (
        not isinstance(value, Iterator | list | dict | set | np.ndarray)
        and (not isinstance(value, tuple) or all(map(_stays, value)))
    )


def _hashed(value: Any) -> bool:
    return isinstance(value, FunctionType)
