"""What a rewrite rule is, and which rules concern a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Generic, TypeAlias, TypeVar, overload

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
Classes: TypeAlias = "type[O] | tuple[type[O], ...]"
Made: TypeAlias = "Tensor | tuple[Tensor, ...] | None"
Step: TypeAlias = Callable[[type[Op]], "Visit | None"]
"""What is to be done with nodes of an op class, or None."""


class NodeOf(Node, Generic[Some_co]):
    """A node whose op is known to be of a class, so that its attributes are: an annotation only."""

    __slots__ = ()
    op: Some_co


class Rule:
    """A rewrite of nodes of some op classes; its docstring is the algebra.

    ops    the op classes; a class that inherits from one of them is another op
    fits   or which op classes
    over   op classes of which one has to be behind an input, if any are named
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
        fits: Callable[[type[Op]], bool] | None,
        over: tuple[type[Op], ...],
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

    def __repr__(self) -> str:
        return f"<{self.level} rule {self.name}: {self.__doc__}>"


@overload
def rule(
    *ops: type[O], of: Classes[I], level: str = EXACT
) -> Callable[[Callable[[NodeOf[O], NodeOf[I]], Made]], Rule]: ...


@overload
def rule(
    *ops: type[O], over: Classes[Op] = (), level: str = EXACT
) -> Callable[[Callable[[NodeOf[O]], Made]], Rule]: ...


@overload
def rule(
    *, fits: Callable[[type[Op]], bool], over: Classes[Op] = (), level: str = EXACT
) -> Callable[[Callable[[Node], Made]], Rule]: ...


def rule(
    *ops: type[Op],
    fits: Callable[[type[Op]], bool] | None = None,
    of: Classes[Op] = (),
    over: Classes[Op] = (),
    level: str = EXACT,
) -> Callable[[Callable[..., Made]], Rule]:
    """Make a rewrite a rule for nodes of these op classes, or of the op classes that fit.

    over: op classes of which one has to be behind an input. of: the same for nodes of one input;
    the rewrite takes the node behind it as its second argument. TypeError for what are no op
    classes, and for none.
    """
    behind = of or over
    classes = behind if isinstance(behind, tuple) else (behind,)
    wrong = [c for c in (*ops, *classes) if not (isinstance(c, type) and issubclass(c, Op))]
    if wrong or not (ops or fits):
        got = f", got {wrong}" if wrong else ""
        raise TypeError(f"a rewrite rule is for op classes, as rule(Exp){got}")
    return lambda apply: Rule(apply, ops, fits, classes, bool(of), level)


# --- which rules concern a node -----------------------------------------------------------------


def applying(rules: Iterable[Rule], fired: Counter[str]) -> Step:
    """The step that applies rules, counting in `fired` how often each did."""
    everything = tuple(rules)
    named, asking = _by_class(everything)

    def step(op_class: type[Op]) -> Visit | None:
        fitting = [i for i in asking if everything[i].concerns(op_class)]
        mine = [everything[i] for i in sorted({*named.get(op_class, ()), *fitting})]
        always = [r for r in mine if not r.over]
        over: dict[type[Op], list[Rule]] = {}
        for each in mine:
            for behind in each.over:
                over.setdefault(behind, []).append(each)
        return _choosing(always, over, fired) if mine else None

    return step


@lru_cache(maxsize=8)
def _by_class(rules: tuple[Rule, ...]) -> tuple[dict[type[Op], list[int]], list[int]]:
    """The places of rules by the op classes that they name, and of those that ask the class."""
    named: dict[type[Op], list[int]] = {}
    for i, each in enumerate(rules):
        for op_class in each.ops:
            named.setdefault(op_class, []).append(i)
    return named, [i for i, each in enumerate(rules) if each.fits is not None]


def _choosing(always: list[Rule], over: dict[type[Op], list[Rule]], fired: Counter[str]) -> Visit:
    """The visit that applies the first rule that fires."""

    def tried(rules: list[Rule], node: Node, inner: Node | None) -> tuple[Tensor, ...] | None:
        for each in rules:
            try:
                found = each.apply(node, inner) if each.inner else each.apply(node)
                if found is None:
                    continue
                outputs = found if isinstance(found, tuple) else (found,)
                same = all(a.type is b.type for a, b in zip(outputs, node.outputs, strict=True))
            except Exception as error:
                error.add_note(f"in the rewrite rule {each.name!r}, for {node.name} ({node.where})")
                raise
            if same:
                fired[each.name] += 1
                return outputs
        return None

    def visit(node: Node) -> tuple[Tensor, ...] | None:
        if node.controls:
            return None
        inputs = node.inputs
        if len(inputs) > 2:
            inputs = tuple({type(t.node.op): t for t in inputs}.values())
        for t in inputs:
            rules = over.get(type(t.node.op))
            if rules is not None:
                found = tried(rules, node, t.node)
                if found is not None:
                    return found
        return tried(always, node, None) if always else None

    return visit
