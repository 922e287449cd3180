"""What a rewrite rule is, and which rules concern a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import PurePath
from typing import Any, Generic, TypeAlias, TypeVar, overload
from weakref import WeakKeyDictionary

from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.program import Visit

EXACT, ROUNDING, FAST = LEVELS = ("exact", "rounding", "fast")
"""What a rewrite may do to values.

exact     nothing: the same bits, where any NaN is as good as any other
rounding  other last bits: as accurate as before or more, NaN, infinities and the sign of zero as
          they were, but where a sum overflows on the way in one order of its terms and not in
          another
fast      whatever is equal for real numbers; only with fast_math=True
"""

Some_co = TypeVar("Some_co", bound=Op, covariant=True)
O = TypeVar("O", bound=Op)  # noqa: E741
I = TypeVar("I", bound=Op)  # noqa: E741
Fits: TypeAlias = Callable[[type[Op]], bool]
Classes: TypeAlias = "type[O] | tuple[type[O], ...]"
Made: TypeAlias = "Tensor | tuple[Tensor, ...] | None"
Step: TypeAlias = Callable[[type[Op]], "Visit | None"]
"""What is to be done with nodes of an op class, or None."""


class NodeOf(Node, Generic[Some_co]):
    """A node whose op is known to be of a class, so that its attributes are: an annotation only."""

    __slots__ = ()
    op: Some_co


Rewrote: TypeAlias = Callable[[str, Node, tuple[Tensor, ...]], None]
"""Is told a rule's words, the node it fired on, and what stands for its outputs."""
NEW_PARAGRAPH = "\n\n"


class Fired(Counter[str]):
    """How often each rule fired; `rewrote` is told of each time, where somebody asked."""

    def __init__(self, rewrote: Rewrote | None = None) -> None:
        super().__init__()
        self.rewrote = rewrote


class RewriteRule:
    """A rewrite of nodes of some op classes; its docstring is the algebra.

    ops    the op classes; a class that inherits from one of them is another op
    fits   or which op classes
    over   which op classes one has to be of that is behind an input; None: that does not matter
    inner  whether it takes the node that is behind that input, too
    level  EXACT, ROUNDING or FAST

    It takes a node and returns what stands for its output (or outputs), or None. What it returns
    counts only if it is of the very same type. It looks at the node and what is before it, never
    at readers, so that a node needs to be settled only once.
    """

    def __init__(
        self,
        apply: Callable[..., Made],
        ops: tuple[type[Op], ...],
        fits: Fits | None,
        over: Fits | None,
        inner: bool,
        level: str,
    ) -> None:
        self.apply = apply
        self.ops = ops
        self.fits = fits
        self.over = over
        self.inner = inner
        self.level = level
        self.name = apply.__name__
        self.__doc__ = apply.__doc__

    def concerns(self, op_class: type[Op]) -> bool:
        """Whether the rule is for nodes of this op class."""
        return op_class in self.ops or (self.fits is not None and self.fits(op_class))

    @property
    def words(self) -> str:
        """`power_of_two (powers.py:31): x**2 -> square(x)`: its name, line and algebra."""
        code = self.apply.__code__
        where = f"{PurePath(code.co_filename).name}:{code.co_firstlineno}"
        return f"{self.name} ({where}): {(self.__doc__ or '').partition(NEW_PARAGRAPH)[0]}"

    def __repr__(self) -> str:
        return f"<{self.level} rule {self.name}: {self.__doc__}>"


@overload
def rule(
    *ops: type[O], of: Classes[I], level: str = EXACT
) -> Callable[[Callable[[NodeOf[O], NodeOf[I]], Made]], RewriteRule]: ...


@overload
def rule(
    *ops: type[O], over: Classes[Op] = (), level: str = EXACT
) -> Callable[[Callable[[NodeOf[O]], Made]], RewriteRule]: ...


@overload
def rule(
    *, fits: Fits, over: Classes[Op] = (), level: str = EXACT
) -> Callable[[Callable[[Node], Made]], RewriteRule]: ...


@overload
def rule(
    *, fits: Fits, of: Classes[Op] | Fits, level: str = EXACT
) -> Callable[[Callable[[NodeOf[Any], NodeOf[Any]], Made]], RewriteRule]: ...


@overload
def rule(
    *ops: type[O], of: Fits, level: str = EXACT
) -> Callable[[Callable[[NodeOf[O], Node], Made]], RewriteRule]: ...


def rule(
    *ops: type[Op],
    fits: Fits | None = None,
    of: Classes[Op] | Fits = (),
    over: Classes[Op] = (),
    level: str = EXACT,
) -> Callable[[Callable[..., Made]], RewriteRule]:
    """Make a rewrite a rule for nodes of these op classes, or of the op classes that fit.

    over: op classes, one of which has to produce an input. of: the same for nodes of one input,
    or which op classes fit; the rewrite takes the node behind it as its second argument. TypeError
    for what are not op classes, and for none.
    """
    wrong = [c for c in (*ops, *_listed(of), *_listed(over)) if not _is_op_class(c)]
    if wrong or not (ops or fits):
        got = f", got {wrong}" if wrong else ""
        raise TypeError(f"a rewrite rule is for op classes, as rule(Exp){got}")
    behind = _fitting(of or over)
    return lambda apply: RewriteRule(apply, ops, fits, behind, bool(of), level)


def _is_op_class(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, Op)


def _listed(classes: Classes[Op] | Fits) -> tuple[Any, ...]:
    """The op classes that are named; none where a function says which fit."""
    if isinstance(classes, tuple):
        return classes
    return () if callable(classes) and not isinstance(classes, type) else (classes,)


def _fitting(classes: Classes[Op] | Fits) -> Fits | None:
    """Whether an op class is one of these; None where none is named."""
    if callable(classes) and not isinstance(classes, type):
        return classes
    return _listed(classes).__contains__ if classes else None


# --- which rules concern a node -----------------------------------------------------------------


def applying(rules: Iterable[RewriteRule], fired: Counter[str]) -> Step:
    """The step that applies rules, counting in `fired` how often each did."""
    by_class = _by_class(tuple(rules))

    def step(op_class: type[Op]) -> Visit | None:
        mine = by_class.of(op_class)
        return _choosing(mine, fired) if mine else None

    return step


class _ByClass:
    """The rules that concern an op class. Classes are not kept: theirs may close over a graph."""

    def __init__(self, rules: tuple[RewriteRule, ...]) -> None:
        self.rules = rules
        self._known: WeakKeyDictionary[type[Op], list[RewriteRule]] = WeakKeyDictionary()

    def of(self, op_class: type[Op]) -> list[RewriteRule]:
        """In the order in which they stand."""
        rules = self._known.get(op_class)
        if rules is None:
            rules = self._known[op_class] = [r for r in self.rules if r.concerns(op_class)]
        return rules


_by_class = lru_cache(maxsize=8)(_ByClass)


class _Over(dict[type[Op], list[RewriteRule]]):
    """The rules that want an op class behind an input, by that class."""

    def __init__(self, rules: list[RewriteRule]) -> None:
        super().__init__()
        self.rules = [r for r in rules if r.over is not None]

    def __missing__(self, op_class: type[Op]) -> list[RewriteRule]:
        rules = self[op_class] = [r for r in self.rules if r.over and r.over(op_class)]
        return rules


def _choosing(rules: list[RewriteRule], fired: Counter[str]) -> Visit:
    """The visit that applies the first rule that fires."""
    always, over = [r for r in rules if r.over is None], _Over(rules)
    rewrote = fired.rewrote if isinstance(fired, Fired) else None

    def tried(
        rules: list[RewriteRule], node: Node, inner: Node | None
    ) -> tuple[Tensor, ...] | None:
        for each in rules:
            try:
                rewritten = each.apply(node, inner) if each.inner else each.apply(node)
                if rewritten is None:
                    continue
                outputs = rewritten if isinstance(rewritten, tuple) else (rewritten,)
                same = all(a.type is b.type for a, b in zip(outputs, node.outputs, strict=True))
            except Exception as error:
                error.add_note(f"in the rewrite rule {each.name!r}, for {node.name} ({node.where})")
                raise
            if same:
                fired[each.name] += 1
                if rewrote:
                    rewrote(each.words, node, outputs)
                return outputs
        return None

    def visit(node: Node) -> tuple[Tensor, ...] | None:
        if node.controls:
            return None
        inputs = node.inputs
        if len(inputs) > 2:
            inputs = tuple({type(t.node.op): t for t in inputs}.values())
        for t in inputs:
            behind = over[type(t.node.op)]
            if behind:
                rewritten = tried(behind, node, t.node)
                if rewritten is not None:
                    return rewritten
        return tried(always, node, None) if always else None

    return visit
