"""A kernel's source for one op and the inputs of one node: what is known is put in its place.

`return xp.flip(y, axis=self.axis) if self.descending else y` is `y` for one op and
`np.flip(y, axis=1)` for another. A function that the kernel calls is written down beside it,
without the arguments that are known.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from ..base.errors import GraphGradError
from ..ir.op import Op
from ..ir.state import RUN
from .known import KernelNames, Local, NotKnown, is_local, is_own_function, refuse, unwrapped
from .literals import MODULES, NotLiteral, dtype_name, literal, named, place
from .pruning import Pruner, Visitor
from .syntax import (
    Clash,
    Refused,
    all_parameters,
    first_paragraph,
    has_own_names,
    names_set,
    once,
    parameters,
    parsed,
    settings,
    source,
    substituted,
    unannotate,
    without_doc,
)

__all__ = ["Helpers", "Specialised", "specialised"]

OPERATORS: dict[Any, type[ast.operator]] = {
    np.add: ast.Add,
    np.subtract: ast.Sub,
    np.multiply: ast.Mult,
    np.divide: ast.Div,
    np.matmul: ast.MatMult,
    np.floor_divide: ast.FloorDiv,
    np.remainder: ast.Mod,
    np.power: ast.Pow,
    np.bitwise_and: ast.BitAnd,
    np.bitwise_or: ast.BitOr,
    np.bitwise_xor: ast.BitXor,
    np.left_shift: ast.LShift,
    np.right_shift: ast.RShift,
}
COMPARISONS: dict[Any, type[ast.cmpop]] = {
    np.equal: ast.Eq,
    np.not_equal: ast.NotEq,
    np.less: ast.Lt,
    np.less_equal: ast.LtE,
    np.greater: ast.Gt,
    np.greater_equal: ast.GtE,
}
SIGNS: dict[Any, type[ast.unaryop]] = {np.negative: ast.USub, np.invert: ast.Invert}


SHORT = 50
"""Characters; what a function returns is put in place of a call of it where that is as short."""

_AS_THEY_ARE, _LOAD = ast.Constant | ast.Starred | ast.Slice, ast.Load()

LONG = 60
"""Characters; a longer constant of a module is one of the file."""


class Specialised:
    """What a function is for what is known of its arguments.

    params  the names of its other parameters, stars included
    body    its statements
    runs    whether it reads the number of the run
    lengths  the names of open lengths that it reads, which it is given by keyword
    """

    def __init__(
        self, params: list[str], body: list[ast.stmt], runs: bool, lengths: Sequence[str] = ()
    ) -> None:
        self.params = params
        self.body = body
        self.runs = runs
        self.lengths = lengths

    def with_defaults(self, texts: Mapping[str, str]) -> Specialised:
        """The same, where these parameters may be left out."""
        params = [f"{p}={texts[p]}" if p in texts else p for p in self.params]
        return Specialised(params, self.body, self.runs, self.lengths)

    @property
    def all_params(self) -> list[str]:
        """The parameters with the lengths, which come last."""
        if not self.lengths:
            return self.params
        star = [] if any(p.startswith("*") for p in self.params) else ["*"]
        return [*self.params, *star, *self.lengths]

    @property
    def expression(self) -> ast.expr | None:
        """What it returns, where it does nothing else."""
        if len(self.body) == 1 and isinstance(self.body[0], ast.Return):
            return self.body[0].value or ast.Constant(None)
        return None

    def text(self, name: str, doc: str, cached: bool = False) -> str:
        """Its definition."""
        lines = ["@functools.cache"] * cached
        lines.append(f"def {name}({', '.join(self.all_params)}):")
        if doc:
            lines.append(f'    """{doc}"""')
        for statement in self.body or [ast.Pass()]:
            text = ast.unparse(ast.fix_missing_locations(statement))
            lines.append(textwrap.indent(text, "    "))
        return "\n".join(lines)


class Helpers:
    """Functions, classes and constants that a file needs, each written once.

    fresh   a name that nothing in the file has
    keep    what stands for an array
    constant  the name of what a text says
    lengths  the names of open lengths in the file
    """

    def __init__(
        self,
        fresh: Callable[[str], str],
        keep: Callable[[str, Any], str],
        constant: Callable[[str, str], str],
        lengths: frozenset[str] = frozenset(),
    ) -> None:
        self.lengths = lengths
        self.texts: dict[str, str] = {}
        self.modules: set[str] = set()
        self._fresh = fresh
        self._keep = keep
        self._constant = constant
        self._names: dict[Any, str] = {}
        self._same: dict[tuple[str, str], str] = {}
        self._open: set[Any] = set()
        self._made: dict[Any, Specialised] = {}
        self._held: list[Any] = []

    def call(
        self, function: Any, bound: Mapping[str, Any], optional: Mapping[str, Any] | None = None
    ) -> str:
        """The name of a function, written down for what is known of its arguments.

        optional: defaults of those that a call may leave out, which nobody knows of a `*xs`.
        """
        defaults = dict(optional or {})
        key = self._key(function, bound), *self._key(function, defaults)
        if key not in self._names:
            written = unwrapped(function)
            made = self.specialised(function, bound)
            if defaults:
                made = made.with_defaults({n: self.value(v, n) for n, v in defaults.items()})
            doc = first_paragraph(written.__doc__)
            base = "_" + written.__name__.strip("_<>")
            self._names[key] = self.define(base, made, doc, _is_cached(function))
        return self._names[key]

    def specialised(self, function: Any, bound: Mapping[str, Any]) -> Specialised:
        """A function for what is known of its arguments."""
        key = self._key(function, bound)
        if key not in self._made:
            if key in self._open:
                raise Refused(f"its kernel calls {function.__name__}, which calls itself")
            self._open.add(key)
            self._held.append(bound)  # a key is of things that live
            try:
                self._made[key] = specialised(unwrapped(function), bound, self)
            finally:
                self._open.remove(key)
        return self._made[key]

    def _key(self, function: Any, bound: Mapping[str, Any]) -> Any:
        return function, tuple((n, _key(v)) for n, v in sorted(bound.items()))

    def define(self, base: str, made: Specialised, doc: str, cached: bool = False) -> str:
        """The name of a definition: a new one, or that of one with the same text."""
        text = made.text("f", doc, cached)
        name = self._same.get((base, text))
        if name is None:
            name = self._same[base, text] = self._fresh(base)
            self.texts[name] = made.text(name, doc, cached)
            self.modules |= {"functools"} if cached else set()
        return name

    def verbatim(self, function: Any) -> str:
        """The name of a function of `runtime`, written down as it is, with those it calls."""
        name, text, calls = _as_it_is(function)
        if name not in self.texts:
            for called in calls:
                self.verbatim(called)
            self.texts[name] = text
        return name

    def value(self, value: Any, hint: str) -> str:
        """An expression for a known value; Refused."""
        if is_local(value):
            return str(value.name)
        if isinstance(value, np.ndarray):
            return self._keep(hint, value)
        try:
            text = literal(value)
        except NotLiteral:
            pass
        else:
            self._import(text)
            return text
        if isinstance(value, tuple | list):
            return self._sequence(value, hint)
        if isinstance(value, type):
            return self._class(value)
        if is_own_function(unwrapped(value)):
            return self._handed_on(value, {})
        if isinstance(value, MethodType):
            return self._handed_on(value.__func__, {"self": value.__self__})
        raise Refused(f"its kernel needs {hint}, a {type(value).__name__}")

    def _handed_on(self, function: Any, bound: Mapping[str, Any]) -> str:
        """The name of a function that is not called here."""
        if self.specialised(function, bound).lengths:
            raise Refused(f"its kernel passes on {function.__name__}, which needs open lengths")
        return self.call(function, bound)

    def constant(self, name: str, text: str) -> str:
        """The name of a constant of the file."""
        if text not in self._names:
            self._names[text] = self._constant(name, text)
        return self._names[text]

    def _sequence(self, value: Any, hint: str) -> str:
        if hasattr(value, "_fields"):
            made = self._class(type(value))
            return f"{made}({', '.join(self.value(v, hint) for v in value)})"
        inner = ", ".join(self.value(v, hint) for v in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner},)"

    def _import(self, text: str) -> None:
        for module in MODULES:
            if f"{module}." in text:
                self.modules.add(module)

    def _class(self, cls: type) -> str:
        if issubclass(cls, GraphGradError):
            return next(b.__name__ for b in cls.__mro__ if b.__module__ == "builtins")
        if issubclass(cls, Op) or cls.__module__.partition(".")[0] in ("builtins", "numpy"):
            raise Refused(f"its kernel needs {cls.__name__}")
        name = self._names.get(cls)
        if name is None:
            name = self._names[cls] = self._fresh("_" + cls.__name__)
            self.texts[name] = self._class_text(cls, name)
        return name

    def _class_text(self, cls: type, name: str) -> str:
        tree = source(cls)
        assert isinstance(tree, ast.ClassDef)
        tree.name, tree.decorator_list = name, []
        module = inspect.getmodule(cls)
        scope = KernelNames({}, frozenset(), vars(module))
        body: list[ast.stmt] = []
        for item in tree.body:
            if isinstance(item, ast.AnnAssign):
                item.annotation = parsed("object")
                body.append(item)
            elif isinstance(item, ast.FunctionDef):
                body.append(_inner_function(item, scope, self))
            else:
                body.append(item)
        tree.body = body
        tree.bases = [parsed(_base(ast.unparse(b), self)) for b in tree.bases]
        return ast.unparse(ast.fix_missing_locations(tree))


@cache
def _as_it_is(function: Any) -> tuple[str, str, list[Any]]:
    """A function's name and text with underscores before names of its module; what it calls."""
    tree = source(function)
    assert isinstance(tree, ast.FunctionDef)
    unannotate(tree)
    tree.body = without_doc(tree.body)
    own = {n: v for n, v in function.__globals__.items() if is_own_function(v)}
    calls = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in own:
            calls.append(own[node.id])
            node.id = f"_{node.id}"
    made = Specialised([ast.unparse(tree.args)], tree.body, False)
    name = f"_{function.__name__}"
    return name, made.text(name, first_paragraph(function.__doc__)), calls


def _base(text: str, helpers: Helpers) -> str:
    if text != "NamedTuple":
        raise Refused(f"its kernel needs a class with the base {text}")
    helpers.modules.add("typing")
    return "typing.NamedTuple"


def _inner_function(tree: ast.FunctionDef, scope: KernelNames, helpers: Helpers) -> ast.FunctionDef:
    """A method of a class that is written down as it is, but for annotations and global names."""
    moving = frozenset({*parameters(tree), *settings(tree.body)})
    writer = _Writer(scope._replace(moving=moving), helpers)
    tree.body = writer.statements(without_doc(tree.body))
    unannotate(tree)
    tree.args.defaults = [writer.expression(d) for d in tree.args.defaults]
    tree.decorator_list = [d for d in tree.decorator_list if ast.unparse(d) == "property"]
    return tree


def specialised(function: FunctionType, bound: Mapping[str, Any], helpers: Helpers) -> Specialised:
    """A function for these arguments, which may be Locals. A `*xs` is bound as a tuple."""
    tree = source(function)
    if not isinstance(tree, ast.FunctionDef):
        raise Refused("its kernel calls a lambda")
    unannotate(tree)
    scope = _scope(function, tree, bound)
    body = without_doc(tree.body)
    free, own = _unbound(tree, bound), parameters(tree)
    moving = settings(body)
    for _ in range(3):
        body = Pruner(scope, once(moving) - own).statements(body)
        before, moving = moving, settings(body)
        scope = scope._replace(moving=frozenset(free.union(moving)))
        if moving == before:
            break
    first = [
        ast.Assign([ast.Name(n, ast.Store())], parsed(helpers.value(v, n)))
        for n, v in bound.items()
        if n in moving and not is_local(v)
    ]
    writer = _Writer(scope, helpers)
    body = [*first, *writer.statements(body)]
    return Specialised(_left(tree, bound), body, writer.runs, _lengths(function, body, helpers))


def _lengths(function: FunctionType, body: list[ast.stmt], helpers: Helpers) -> list[str]:
    """The open lengths that statements read; Clash where these are names of the function too."""
    if not helpers.lengths:
        return []
    read = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name)} & helpers.lengths
    clashing = read & names_set(source(function))
    if clashing:
        raise Clash(clashing)
    return sorted(read)


def _scope(function: FunctionType, tree: ast.FunctionDef, bound: Mapping[str, Any]) -> KernelNames:
    closure = dict(
        zip(
            function.__code__.co_freevars,
            (c.cell_contents for c in function.__closure__ or ()),
            strict=True,
        )
    )
    if "__class__" in closure and "self" in bound:
        bound = {**bound, "super": partial(super, closure["__class__"], bound["self"])}
    moving = frozenset({*settings(tree.body), *_unbound(tree, bound)})
    star = tree.args.vararg
    each = {v.name: v for v in bound.get(star.arg, ()) if is_local(v)} if star else {}
    return KernelNames({**each, **bound}, moving, {**function.__globals__, **closure})


def _unbound(tree: ast.FunctionDef, bound: Mapping[str, Any]) -> set[str]:
    return {n for n in parameters(tree) if n not in bound}


def _left(tree: ast.FunctionDef, bound: Mapping[str, Any]) -> list[str]:
    """The parameters that are left to be given when it runs: those bound to Locals too."""
    params: list[str] = []
    for p in all_parameters(tree):
        value: Any = bound.get(p.arg)
        if p.arg not in bound:
            star = "*" if p is tree.args.vararg else "**" if p is tree.args.kwarg else ""
            params.append(star + p.arg)
        elif is_local(value):
            params.append(value.name)
        elif p is tree.args.vararg:
            params.extend(v.name for v in value)
    return params


class _Writer(Visitor):
    """Puts what is known in its place, and names what is written down beside it."""

    def __init__(self, scope: KernelNames, helpers: Helpers) -> None:
        super().__init__(scope)
        self.helpers = helpers
        self.runs = False

    def expression(self, node: ast.expr) -> ast.expr:
        """An expression."""
        expression: ast.expr = self.visit(node)
        return expression

    def visit(self, node: Any) -> Any:
        """A node; an expression that is known becomes its value."""
        if isinstance(node, ast.expr) and not isinstance(node, _AS_THEY_ARE):
            try:
                return parsed(self._known_text(node))
            except (NotKnown, NotLiteral):
                pass
        return super().visit(node)

    def _known_text(self, node: ast.expr) -> str:
        """The value of an expression as text, where that is plain."""
        if not isinstance(getattr(node, "ctx", _LOAD), ast.Load):
            raise NotLiteral
        if isinstance(node, ast.Name) and node.id not in self.scope.bound:
            raise NotLiteral
        value = self.known(node)
        text = literal(value)
        self.helpers._import(text)
        return text

    def visit_Name(self, node: ast.Name) -> Any:
        """A name of the file, of what a name stands for."""
        if isinstance(node.ctx, ast.Store):
            return node
        try:
            value = self.scope.value(node.id)
        except NotKnown:
            if node.id in self.scope.moving:
                return node
            raise Refused(f"its kernel needs {node.id}, which is not defined") from None
        text = self.helpers.value(value, node.id)
        if len(text) > LONG and node.id not in self.scope.bound:
            text = self.helpers.constant(node.id, text)
        return parsed(text)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """An attribute of what is known, or of what moves."""
        try:
            value = self.known(node)
        except NotKnown:
            node.value = self.visit(node.value)
            return node
        try:
            return parsed(self.helpers.value(value, node.attr))
        except Refused:
            node.value = self.visit(node.value)
            return node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        """`x[(slice(0, 2, None), ...)]` as `x[0:2, ...]`."""
        node.value = self.visit(node.value)
        if not isinstance(node.slice, ast.Slice):
            try:
                node.slice = _index(self.known(node.slice))
                return node
            except (NotKnown, NotLiteral):
                pass
        node.slice = self.visit(node.slice)
        return node

    def visit_Slice(self, node: ast.Slice) -> Any:
        """Its parts."""
        self.generic_visit(node)
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        """Nothing for what is known: it has no effect."""
        try:
            self.known(node.value)
        except NotKnown:
            self.generic_visit(node)
            return node
        return None

    def visit_Assign(self, node: ast.Assign) -> Any:
        """A name is set."""
        node.value = self.visit(node.value)
        node.targets = [self.visit(t) for t in node.targets]
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        """A call of NumPy, of what is written down beside it, or of what moves."""
        if ast.unparse(node) == "RUN.get()" and self.scope.globals.get("RUN") is RUN:
            self.runs = True
            return ast.Name("run", ast.Load())
        try:
            called = self.known(node.func)
        except NotKnown:
            node.func = self.visit(node.func)
            return self._arguments(node)
        refuse(called)
        if _is_named(called):
            return self._numpy(node, called)
        if isinstance(called, MethodType):
            return self._own(node, called.__func__, {_self_of(called): called.__self__})
        if is_own_function(unwrapped(called)):
            return self._own(node, called, {})
        if is_own_function(vars(type(called)).get("__call__")):
            return self._own(node, vars(type(called))["__call__"], {"self": called})
        if isinstance(called, type) and not _is_plain_type(called):
            node.func = parsed(self.helpers.value(called, called.__name__))
            return self._arguments(node)
        if not hasattr(called, "__self__"):
            raise Refused(f"its kernel calls {getattr(called, '__qualname__', called)}")
        return self._numpy(node, called)

    def _arguments(self, node: ast.Call) -> ast.Call:
        node.args = [a for arg in node.args for a in self._argument(arg)]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return node

    def _argument(self, arg: ast.expr) -> list[ast.expr]:
        """An argument, or those that a star stands for."""
        if not isinstance(arg, ast.Starred):
            return [self.visit(arg)]
        try:
            return [parsed(literal(v)) for v in self.known(arg.value)]
        except (NotKnown, NotLiteral):
            return [ast.Starred(self.visit(arg.value), ast.Load())]

    def _numpy(self, node: ast.Call, called: Any) -> Any:
        """A call of NumPy, by an operator where there is one."""
        node.func = self.visit(node.func)
        node = self._arguments(node)
        node.args = [_short_dtype(a) for a in node.args]
        for keyword in node.keywords:
            keyword.value = _short_dtype(keyword.value)
        node.keywords = [k for k in node.keywords if not _says_nothing(k)]
        if node.keywords or not isinstance(called, np.ufunc):
            if called is np.astype:
                node.func = ast.Attribute(node.args.pop(0), "astype", ast.Load())
            return node
        if called in SIGNS and len(node.args) == 1:
            return ast.UnaryOp(SIGNS[called](), node.args[0])
        if len(node.args) == 2 and called in OPERATORS:
            return ast.BinOp(node.args[0], OPERATORS[called](), node.args[1])
        if len(node.args) == 2 and called in COMPARISONS:
            return ast.Compare(node.args[0], [COMPARISONS[called]()], [node.args[1]])
        return node

    def _own(self, node: ast.Call, function: Any, bound: dict[str, Any]) -> ast.expr:
        """A call of a function that is written down beside it, without what is known."""
        parameters = list(inspect.signature(function).parameters.values())
        positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        free = [p.name for p in positional if p.name not in bound]
        bound, args, given, starred = dict(bound), [], set(bound), False
        pending = [a for arg in node.args for a in self._expanded(arg)]
        for arg in pending:
            starred = starred or isinstance(arg, ast.Starred)
            name = free.pop(0) if free and not starred else None
            given |= {name} if name else set(free if starred else ())
            if name is None or not self._binds(bound, name, arg):
                args.append(arg)
        node.args = args
        node.keywords = [
            k for k in node.keywords if k.arg is None or not self._binds(bound, k.arg, k.value)
        ]
        given |= {k.arg for k in node.keywords if k.arg} | set(bound)
        for p in parameters:
            if p.name not in given and p.default is not p.empty:
                bound[p.name] = p.default
        node = self._arguments(node)
        optional = {p.name: p.default for p in positional if p.name in free and starred}
        optional = {n: v for n, v in optional.items() if v is not inspect.Parameter.empty}
        alone = optional or _is_cached(function)
        made = None if alone else self.helpers.specialised(function, bound)
        if made is not None and (inlined := _inlined(made, node)) is not None:
            return inlined
        lengths = self.helpers.specialised(function, bound).lengths if self.helpers.lengths else ()
        if lengths and alone:
            raise Refused(f"its kernel calls {function.__name__}, which needs open lengths")
        node.keywords += [ast.keyword(name, ast.Name(name, ast.Load())) for name in lengths]
        node.func = ast.Name(self.helpers.call(function, bound, optional), ast.Load())
        return node

    def _expanded(self, arg: ast.expr) -> list[ast.expr]:
        if not isinstance(arg, ast.Starred):
            return [arg]
        try:
            return [parsed(literal(v)) for v in self.known(arg.value)]
        except (NotKnown, NotLiteral):
            return [arg]

    def _binds(self, bound: dict[str, Any], name: str, arg: ast.expr) -> bool:
        """Whether an argument is known, and goes into the function."""
        if isinstance(arg, ast.Starred):
            return False
        try:
            value = self.known(arg)
        except NotKnown:
            return False
        if is_local(value):
            bound[name] = Local(name, value.type)  # it is given, of a type that is known
            return False
        if not _goes_in(value):
            return False
        bound[name] = value
        return True


def _self_of(method: MethodType) -> str:
    return next(iter(inspect.signature(method.__func__).parameters))


def _goes_in(value: Any) -> bool:
    """Whether a known argument is put into a function: what decides, and what has no literal."""
    if value is None or isinstance(value, bool | str):
        return True
    try:
        text = literal(value)
    except NotLiteral:
        return not isinstance(value, np.ndarray)
    return text == "np" or (
        text.startswith("np.") and callable(value) and not isinstance(value, np.generic | np.dtype)
    )


def _is_plain_type(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in ("numpy", "builtins", "functools", "itertools")


def _is_named(called: Any) -> bool:
    """Whether NumPy, Python or its standard library has a name for it."""
    try:
        named(called)
    except NotLiteral:
        return False
    return True


def _inlined(made: Specialised, call: ast.Call) -> ast.expr | None:
    """A call as what the function returns, where that is short."""
    expression = made.expression
    plain = not call.keywords and not any(isinstance(a, ast.Starred) for a in call.args)
    starred = any("*" in p for p in made.params)
    if expression is None or starred or not plain or len(made.params) != len(call.args):
        return None
    simple = all(isinstance(a, ast.Name | ast.Constant) for a in call.args)
    short = simple and len(ast.unparse(expression)) <= SHORT and not has_own_names(expression)
    if not short and not isinstance(expression, ast.Name | ast.Constant):
        return None
    return substituted(expression, dict(zip(made.params, call.args, strict=True)))


def _is_cached(function: Any) -> bool:
    return hasattr(function, "cache_info")


def _says_nothing(keyword: ast.keyword) -> bool:
    """`keepdims=False`."""
    value = keyword.value
    return keyword.arg == "keepdims" and isinstance(value, ast.Constant) and value.value is False


def _short_dtype(node: ast.expr) -> ast.expr:
    """`np.dtype("float64")` as `np.float64`, where NumPy takes it."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "np.dtype":
        name = node.args[0]
        if isinstance(name, ast.Constant):
            return parsed(dtype_name(np.dtype(str(name.value))))
    return node


def _index(value: Any) -> ast.expr:
    """What stands between brackets."""
    expression = parsed(f"x[{place(value)}]" if type(value) is slice else literal(value))
    return expression.slice if isinstance(expression, ast.Subscript) else expression


def _key(value: Any) -> Any:
    """What tells known values apart."""
    if is_local(value):
        return ("local", value.name, value.type)
    if value is None or isinstance(value, bool | int | str):
        return (type(value), value)
    return id(value)
