"""Functions of torch.autograd with rules of their own, kept as one step while torch exports.

torch.export looks into them, and their rules would be lost. `Function.apply` is replaced meanwhile:
where it is a function of Python, in the function itself, for `relu = MyRelu.apply` keeps that
function. Since PyTorch 2.14 it is one of C, and what keeps it is met where that asks for `forward`.
"""

from __future__ import annotations

import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import FunctionType, MethodType
from typing import Any
from weakref import WeakValueDictionary

from ...base.errors import GradientError
from ...base.position import is_library, show

__all__ = [
    "STEP",
    "WRITES",
    "AppliedFunction",
    "FunctionContext",
    "applied",
    "has_gradient",
    "innermost",
    "is_users",
    "kept",
]

torch: Any = import_module("torch")
_pytree: Any = import_module("torch.utils._pytree")
_checkpoint: Any = import_module("torch.utils.checkpoint")
_FUNCTION: Any = torch.autograd.Function
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_ONCE = inspect.getsourcefile(torch.autograd.function.once_differentiable)


WRITES = "writes into its inputs, which a graph cannot follow: have it return a new tensor"


class FunctionContext:
    """What a function of torch.autograd finds as `ctx`."""

    def __init__(self, needs: Sequence[bool], of: str = "") -> None:
        self._of = of
        self.needs_input_grad = tuple(needs)
        self.saved: tuple[Any, ...] = ()
        self.materialized = True
        self.without_gradient: tuple[Any, ...] = ()

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What was saved."""
        return self.saved

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for backward."""
        self.saved = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Of use for forward-mode derivatives alone."""

    def set_materialize_grads(self, value: bool) -> None:
        """Whether gradients that are none come as zeros."""
        self.materialized = value

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Outputs without a gradient."""
        self.without_gradient = tensors

    def besides(self, known: Sequence[Any]) -> list[Any]:
        """What it keeps and is none of these, each tensor once."""
        told = {id(t) for t in known}
        kept = {id(t): t for t in _pytree.tree_leaves(vars(self)) if isinstance(t, torch.Tensor)}
        return [t for at, t in kept.items() if at not in told]

    def mark_dirty(self, *tensors: Any) -> None:
        """Refused: nodes do not write."""
        raise GradientError(f"{self._of} says ctx.mark_dirty: it {WRITES}")


class AppliedFunction:
    """One application of a function of torch.autograd.

    cls        the function
    where      the line of the user that applies it
    needed     of its tensors those that require gradients
    places     of its arguments the tensors, by their places among all tensors that it is given
    structure  of what it returns; tensors are counted
    stopped    of the tensors that it returns those that it marks as not differentiable
    kept       what its step gave, while torch exports: what it saves of it torch does not follow
    """

    def __init__(self, cls: Any, leaves: Sequence[Any], spec: Any, needed: Sequence[bool]) -> None:
        self.cls = cls
        self.needed = tuple(needed)
        self._leaves, self._spec = leaves, spec
        args, _ = _pytree.tree_unflatten(leaves, spec)
        self.places = [x.at if isinstance(x, _Place) else None for x in args]
        self.structure: Any = None
        self.stopped: tuple[bool, ...] = ()
        self.kept: Sequence[Any] = ()
        self.where = innermost()

    @classmethod
    def of(
        cls, function: Any, args: Sequence[Any], kwargs: Any
    ) -> tuple[AppliedFunction, list[Any]]:
        """An application, and the tensors that it is of."""
        leaves, spec = _pytree.tree_flatten((tuple(args), kwargs))
        counted, tensors = _counted(leaves)
        return cls(function, counted, spec, [t.requires_grad for t in tensors]), tensors

    @property
    def name(self) -> str:
        """That of its class."""
        return str(self.cls.__name__)

    @property
    def key(self) -> Any:
        """Equal for applications that do the same to tensors of equal types."""
        given = tuple(self._leaves)
        try:
            hash(given)
        except TypeError:
            return id(self)
        return self.cls, self._spec, given, tuple(map(type, given)), self.needed

    def forward_of(self, *tensors: Any) -> list[Any]:
        """The tensors that it returns, of these, and what else it keeps for its backward."""
        made, ctx = self._called(tensors)
        return [*made, *ctx.besides([*tensors, *made])]

    @property
    def once(self) -> bool:
        """Whether it was said to have no second derivative."""
        code = getattr(self._named_rule, "__code__", None)
        return code is not None and code.co_filename == _ONCE and "fn" in code.co_freevars

    @property
    def _named_rule(self) -> Any:
        vjp = getattr(self.cls, "vjp", None)
        return self.cls.backward if vjp in (None, _FUNCTION.vjp) else vjp

    @property
    def _rule(self) -> Any:
        """Its backward, without what keeps it from being differentiated again."""
        return self._named_rule.__wrapped__ if self.once else self._named_rule

    def _called(self, tensors: Sequence[Any]) -> tuple[list[Any], FunctionContext]:
        """The tensors that it returns, and what its backward is given."""
        ctx = FunctionContext(self._needs, f"{self.name}, applied at {self.where},")
        values = [tensors[x.at] if isinstance(x, _Place) else x for x in self._leaves]
        args, kwargs = _pytree.tree_unflatten(values, self._spec)
        if self.cls.setup_context is not torch.autograd.function._SingleLevelFunction.setup_context:
            made = self.cls.forward(*args, **kwargs)
            self.cls.setup_context(ctx, args, made)
        else:
            made = self.cls.forward(ctx, *args, **kwargs)
        leaves, spec = _pytree.tree_flatten(made)
        counted, found = _counted(leaves)
        self.structure = counted, spec
        without = {id(t) for t in ctx.without_gradient}
        self.stopped = tuple([id(y) in without for y in found])
        return found, ctx

    def backward(self, xs: Sequence[Any], kept: Sequence[Any], dys: Sequence[Any]) -> list[Any]:
        """The gradients of its arguments that are tensors, by their places; None without one.

        kept is what `forward_of` gave. What it saved of its inputs and outputs is read as they are,
        with their gradients; what else it saved is a number, as it is in torch, and so is an output
        that it marks as not differentiable.
        """
        hidden = [x.detach() for x in xs]
        made, ctx = self._called(hidden)
        ys, rest = kept[: len(made)], kept[len(made) :]
        besides = ctx.besides([*hidden, *made])
        known = {id(t): value.detach() for t, value in zip(besides, rest, strict=True)}
        for t, y, stopped in zip(made, ys, self.stopped, strict=True):
            known[id(t)] = y.detach() if stopped else y
        known |= {id(t): x for t, x in zip(hidden, xs, strict=True)}

        def seen(value: Any) -> Any:
            return known.get(id(value), value)

        for name, value in vars(ctx).items():
            setattr(ctx, name, _pytree.tree_map(seen, value))
        flat = [
            torch.zeros_like(y) if dy is None and ctx.materialized else dy
            for y, dy in zip(ys, dys, strict=True)
        ]
        leaves, spec = self.structure
        given = [flat[x.at] if isinstance(x, _Place) else None for x in leaves]
        grads = _pytree.tree_unflatten(given, spec)
        found = self._rule(ctx, *(grads if isinstance(grads, tuple | list) else (grads,)))
        found = tuple(found) if isinstance(found, tuple | list) else (found,)
        if any(dx is not None for dx in found[len(self.places) :]) or len(found) < len(self.places):
            raise GradientError(
                f"it has {len(self.places)} arguments, and its backward returned {len(found)} "
                "gradients"
            )
        dxs: list[Any] = [None] * len(xs)
        for place, dx in zip(self.places, found, strict=False):
            if place is not None:
                dxs[place] = dx
        return dxs

    @property
    def _needs(self) -> list[bool]:
        return [place is not None and self.needed[place] for place in self.places]


def innermost() -> str:
    """The innermost line outside of torch and graphgrad."""
    frame: Any = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return "<unknown>" if frame is None else show((frame.f_code.co_filename, frame.f_lineno))


def has_gradient(y: Any) -> bool:
    """Whether a tensor of this dtype may have one."""
    return isinstance(y, torch.Tensor) and (y.is_floating_point() or y.is_complex())


def is_users(file: str) -> bool:
    """Whether a file is neither of torch nor of graphgrad."""
    return not file.startswith((_TORCH, "<", "torch/")) and not is_library(file)


@dataclass(frozen=True)
class _Place:
    """Where a tensor is among others."""

    at: int


def _counted(leaves: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Leaves with places for tensors, and the tensors."""
    tensors = [x for x in leaves if isinstance(x, torch.Tensor)]
    count = iter(range(len(tensors)))
    return [_Place(next(count)) if isinstance(x, torch.Tensor) else x for x in leaves], tensors


_applied: WeakValueDictionary[int, AppliedFunction] = WeakValueDictionary()
"""Applications by number; who opens a program holds its own."""
_local = threading.local()
_swapping = threading.RLock()


def applied(number: int) -> AppliedFunction:
    """The application of this number."""
    return _applied[number]


def _as_one_step(number: int, tensors: Any) -> list[Any]:
    """What torch knows of a step: the types of what it gives."""
    with torch.no_grad():
        return [torch.empty_like(y) for y in _applied[number].forward_of(*tensors)]


class _Step(_FUNCTION):  # type: ignore[misc]
    """A step that is differentiated within the program: by its backward, which is traced."""

    @staticmethod
    def forward(ctx: Any, number: int, *tensors: Any) -> tuple[Any, ...]:
        """The step, which is written down as one."""
        with torch._C._AutoDispatchBelowAutograd():
            kept = tuple(STEP(number, list(tensors)))
        ctx.number = number
        ctx.save_for_backward(*tensors)
        ctx.mark_non_differentiable(*[y for y in kept if not has_gradient(y)])
        ctx.set_materialize_grads(False)
        return kept

    @staticmethod
    def backward(ctx: Any, *dys: Any) -> tuple[Any, ...]:
        """The backward of the function."""
        step = _applied[ctx.number]
        return None, *step.backward(ctx.saved_tensors, step.kept, dys[: len(step.stopped)])


def _differentiable(number: int, tensors: Any) -> list[Any]:
    return list(_Step.apply(number, *tensors))


_library: Any = torch.library.Library("graphgrad_opened", "DEF")
_library.define(
    "function(int number, Tensor[] tensors) -> Tensor[]", tags=(torch.Tag.pt2_compliant_tag,)
)
torch.library.register_fake("graphgrad_opened::function", _as_one_step, lib=_library)
_library.impl("function", _differentiable, "Autograd")
STEP: Any = torch.ops.graphgrad_opened.function.default
"""A function of torch.autograd, in a program that is opened."""


class _Door:
    """The code that `Function.apply` has meanwhile."""

    def apply(cls, *args: Any, _enter: Any = None, **kwargs: Any) -> Any:
        """Through the door; __class__ is what the code it stands for reads too."""
        return _enter(__class__, cls, args, kwargs)  # type: ignore[name-defined]


@contextmanager
def kept(steps: list[AppliedFunction]) -> Iterator[None]:
    """A block in which functions of torch.autograd are kept as steps, which are noted."""
    with (
        _swapping,
        _by_code(steps) if isinstance(_FUNCTION.apply, MethodType) else _by_class(steps),
    ):
        yield


@contextmanager
def _noting(steps: list[AppliedFunction]) -> Iterator[None]:
    """A block in which steps are noted in this list."""
    outer, _local.steps = getattr(_local, "steps", None), steps
    try:
        yield
    finally:
        _local.steps = outer
        for step in steps:
            step.kept = ()


@contextmanager
def _by_code(steps: list[AppliedFunction]) -> Iterator[None]:
    """By other code in the function `apply`."""
    with _noting(steps):
        apply = _FUNCTION.apply.__func__
        original = FunctionType(
            apply.__code__, apply.__globals__, "apply", apply.__defaults__, apply.__closure__
        )
        before = apply.__code__, apply.__kwdefaults__
        apply.__kwdefaults__ = {"_enter": _entering(original)}
        apply.__code__ = _Door.apply.__code__
        try:
            yield
        finally:
            apply.__code__, apply.__kwdefaults__ = before


@contextmanager
def _by_class(steps: list[AppliedFunction]) -> Iterator[None]:
    """By attributes of the class of classes: `apply` of C asks the function's class for these."""
    meta = type(_FUNCTION)
    doors = {"forward": _forward_of, "backward": _backward_of, "setup_context": _setup_of}
    with _noting(steps):
        for name, door in doors.items():
            setattr(meta, name, property(door))
        try:
            yield
        finally:
            for name in doors:
                delattr(meta, name)


def _own(cls: Any, name: str) -> Any:
    """An attribute of a class as it is without the doors."""
    found = next(base.__dict__[name] for base in cls.__mro__ if name in base.__dict__)
    return found.__get__(None, cls)


def _is_door(cls: Any) -> bool:
    """Whether `apply` asks, called by a program that is opened, for a function of its user."""
    asks = sys._getframe(2).f_code.co_filename
    known = cls.__module__.startswith(("torch._", "graphgrad."))
    return getattr(_local, "steps", None) is not None and not known and asks != __file__


def _setup_of(cls: Any) -> Any:
    """None of its own: `forward` then gets the context."""
    if _is_door(cls):
        _refuse_transforms(cls.__name__, innermost())
        return torch.autograd.function._SingleLevelFunction.setup_context
    return _own(cls, "setup_context")


def _forward_of(cls: Any) -> Any:
    """What keeps the function as a step, and its history, which `apply` replaces by its own."""
    if not _is_door(cls):
        return _own(cls, "forward")

    def forward(ctx: Any, *args: Any) -> Any:
        with _grad_mode(any(ctx.needs_input_grad)):
            given = _entering(cls.apply)(None, cls, args, {})
        leaves, spec = _pytree.tree_flatten(given)
        ctx.step = leaves, args
        tensors = [y for y in leaves if isinstance(y, torch.Tensor)]
        ctx.mark_non_differentiable(*[y for y in tensors if not y.requires_grad])
        ctx.set_materialize_grads(False)
        shown = [y.view_as(y) if has_history(y) else y for y in leaves]
        return _pytree.tree_unflatten(shown, spec)

    return forward


@contextmanager
def _grad_mode(enabled: bool) -> Iterator[None]:
    """A block with gradients on or off, which is not written down."""
    before = torch.is_grad_enabled()
    with torch._C.DisableTorchFunction():
        torch._C._set_grad_enabled(enabled)
    try:
        yield
    finally:
        with torch._C.DisableTorchFunction():
            torch._C._set_grad_enabled(before)


def has_history(y: Any) -> bool:
    """Whether a value is a tensor that a gradient flows to."""
    return isinstance(y, torch.Tensor) and y.requires_grad


def _backward_of(cls: Any) -> Any:
    """The derivative of that step."""
    if not _is_door(cls):
        return _own(cls, "backward")

    def backward(ctx: Any, *dys: Any) -> Any:
        leaves, args = ctx.step
        if len(dys) != len(leaves):
            raise GradientError(f"{cls.__name__} gives {len(leaves)} results, got {len(dys)} dys")
        pairs = [p for p in zip(leaves, dys, strict=True) if has_history(p[0]) and p[1] is not None]
        wanted = [a for a in args if has_history(a)]
        ys, given = [y for y, _ in pairs], [dy for _, dy in pairs]
        found = iter(torch.autograd.grad(ys, wanted, given, create_graph=True, allow_unused=True))
        return tuple([next(found) if has_history(a) else None for a in args])

    return backward


def _refuse_transforms(name: str, where: Any) -> str:
    """How an error begins of a function that is not kept; raised within transforms of functions."""
    lost = f"open_torch() cannot keep the rule of {name}, applied at {where}: "
    if torch._C._are_functorch_transforms_active():
        raise GradientError(
            f"{lost}torch exports the results of torch.func.vmap, jvp and similar transforms "
            "without the rules of the function. Apply it outside of them, to a batch, or put a "
            "rule of graphgrad in its place"
        )
    return lost


def _entering(original: Callable[..., Any]) -> Callable[..., Any]:
    def enter(_owner: Any, cls: Any, args: Any, kwargs: Any) -> Any:
        steps = getattr(_local, "steps", None)
        if steps is None or cls.__module__.startswith(("torch._", "graphgrad.")):
            return original(cls, *args, **kwargs)
        if cls is _checkpoint.CheckpointFunction:  # whose derivative is that of the function
            return args[0](*args[2:], **kwargs)
        if cls.setup_context is not torch.autograd.function._SingleLevelFunction.setup_context:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        made, tensors = AppliedFunction.of(cls, args, kwargs)
        _applied[id(made)] = made
        steps.append(made)
        lost = _refuse_transforms(made.name, made.where)
        try:
            ys = STEP(id(made), tensors)
        except GradientError as error:
            error.add_note(f"in {made.name}.forward, applied at {made.where}")
            raise
        except Exception as error:
            said = f"{type(error).__name__}: {error}".split("\n\n")[0]
            raise GradientError(f"{lost}its forward cannot be opened.\n{said}") from error
        made.kept = ys
        ys = [y.detach() if stopped else y for y, stopped in zip(ys, made.stopped, strict=False)]
        leaves, spec = made.structure
        values = [ys[x.at] if isinstance(x, _Place) else x for x in leaves]
        return _pytree.tree_unflatten(values, spec)

    return enter
