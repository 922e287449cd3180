"""What a program of torch does not say, refused at the line that does it while torch exports.

Hooks, writes to attributes and rules within compiled parts leave no operator: a program without
them would have other gradients or states, and nobody would see it.
"""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any
from weakref import WeakSet

from ...base.errors import GradientError, GraphError
from ...base.position import show
from .functions import innermost, is_users

__all__ = ["contents_kept", "guarded"]

torch: Any = import_module("torch")
_graph: Any = import_module("torch.autograd.graph")
_dynamo: Any = import_module("torch._dynamo.variables.misc")
_transforms: Any = import_module("torch._functorch.eager_transforms")
_BASE: Any = torch._C.TensorBase
_MODULE: Any = torch.nn.Module
_RULE = "Write it as a torch.autograd.Function, or put a rule of graphgrad on the tensor"
_MISSING = object()
_new: WeakSet[Any] = WeakSet()


@contextmanager
def guarded() -> Iterator[None]:
    """A block in which what would be lost is refused: GradientError or GraphError with its line."""
    here, said = threading.get_ident(), list[tuple[Any, str]]()

    def refuse(error: Exception) -> None:
        said.append((type(error), str(error)))
        raise error

    with ExitStack() as stack:
        for owner, name, of in _GUARDS:
            own = vars(owner).get(name, _MISSING)
            guard = of(getattr(owner, name), lambda: threading.get_ident() == here, refuse)
            setattr(owner, name, guard)
            stack.callback(_back, owner, name, own)
        try:
            yield
        except Exception:
            if not said:
                raise
            kind, text = said[0]
            raise kind(text) from None  # what compiles parts would add to it


def _back(owner: Any, name: str, own: Any) -> None:
    if own is _MISSING:
        delattr(owner, name)
    else:
        setattr(owner, name, own)


def _hook(name: str) -> Callable[..., Any]:
    """Of a method of tensors that takes a hook."""

    def of(before: Any, ours: Callable[[], bool], refuse: Any) -> Any:
        def call(tensor: Any, hook: Any) -> Any:
            if ours():
                refuse(
                    GradientError(
                        "open_torch() cannot keep the hook "
                        f"{getattr(hook, '__qualname__', hook)!r} of Tensor.{name}, at "
                        f"{innermost()}: its effect on gradients would be lost. {_RULE}"
                    )
                )
            return before(tensor, hook)

        return call

    return of


def _saved_hooks(before: Any, ours: Callable[[], bool], refuse: Any) -> Any:
    """Of saved_tensors_hooks; what torch builds on it hands values on as they are."""

    def enter(self: Any) -> Any:
        kind = type(self)
        same = kind is _graph.save_on_cpu or kind.__module__.startswith("torch.utils.")
        if ours() and not same:
            refuse(
                GradientError(
                    f"open_torch() cannot keep torch.autograd.graph.{kind.__name__}, at "
                    f"{innermost()}: its effect on gradients would be lost. {_RULE}"
                )
            )
        return before(self)

    return enter


class _GradientNode:
    """Stands for the grad_fn of a tensor, of which the name alone is known."""

    def __init__(self, node: Any, refuse: Any) -> None:
        self._node, self._refuse = node, refuse

    def name(self) -> str:
        """That of torch's node."""
        return str(self._node.name())

    def __getattr__(self, name: str) -> Any:
        self._refuse(
            GradientError(
                f"open_torch() cannot keep grad_fn.{name}, at {innermost()}: hooks on torch's own "
                f"gradient steps would be lost. {_RULE}"
            )
        )


def _grad_fn(before: Any, ours: Callable[[], bool], refuse: Any) -> Any:
    def get(tensor: Any) -> Any:
        found = before.__get__(tensor)
        reads = found is not None and ours() and is_users(sys._getframe(1).f_code.co_filename)
        return _GradientNode(found, refuse) if reads else found

    return property(get)


def _data(before: Any, ours: Callable[[], bool], refuse: Any) -> Any:
    def users() -> bool:
        return ours() and is_users(sys._getframe(2).f_code.co_filename)

    def get(tensor: Any) -> Any:
        return tensor.detach() if users() else before.__get__(tensor)

    def put(tensor: Any, value: Any) -> None:
        if users():
            refuse(
                GradientError(
                    f"open_torch() cannot keep the write to .data of a tensor, at {innermost()}: "
                    "torch.export does not see it. Compute a new tensor, with .detach() where it "
                    "is to have no gradient"
                )
            )
        before.__set__(tensor, value)

    return property(get, put)


def _made(before: Any, ours: Callable[[], bool], refuse: Any) -> Any:
    """Of Module.__init__: modules that are made meanwhile are not known to anyone."""

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if ours():
            _new.add(self)
        before(self, *args, **kwargs)

    return init


def _attribute(before: Any, ours: Callable[[], bool], refuse: Any) -> Any:
    """Of Module.__setattr__: a program has no attributes."""

    def put(self: Any, name: str, value: Any) -> None:
        told = ours() and is_users(sys._getframe(1).f_code.co_filename)
        if told and self not in _new and _is_other(self, name, value):
            refuse(
                GraphError(
                    f"open_torch() cannot keep {type(self).__name__}.{name}, which is set at "
                    f"{innermost()} while the module is called: a graph would lose that. Write "
                    f"into a buffer in place, as in self.{name}.copy_(...), and say updates=True; "
                    "or return it"
                )
            )
        before(self, name, value)

    return put


def _is_other(module: Any, name: str, value: Any) -> bool:
    return not _is_same(getattr(module, name, _MISSING), value)


def _is_same(old: Any, new: Any) -> bool:
    plain = type(old) is type(new) and isinstance(new, int | float | str | bytes)
    return old is new or (plain and bool(old == new))


@contextmanager
def contents_kept(module: Any) -> Iterator[None]:
    """A block after which a module's lists, dicts and sets are as before; GraphError if not."""
    held = [
        (f"{type(part).__name__}.{name}", value, copy.copy(value))
        for part in module.modules()
        for name, value in vars(part).items()
        if type(value) in (list, dict, set) and name not in _OF_MODULES
    ]
    written = []
    try:
        yield
    finally:
        for name, now, before in held:
            if not _has_same(before, now):
                written.append(name)
                now.clear()
                now.extend(before) if isinstance(now, list) else now.update(before)
    if written:
        raise GraphError(
            f"open_torch() cannot keep the writes of the call to {', '.join(written)}: a graph "
            "would lose that. Return it, or write into a buffer in place and say updates=True"
        )


def _has_same(before: Any, now: Any) -> bool:
    if isinstance(now, set):
        return bool(before == now)
    pairs = [(list(before), list(now))]
    if isinstance(now, dict):
        pairs.append((list(before.values()), list(now.values())))
    return all(len(a) == len(b) and all(map(_is_same, a, b)) for a, b in pairs)


_OF_MODULES = vars(_MODULE()).keys()


def _compiled_rule(before: Any, ours: Callable[[], bool], refuse: Any) -> Any:
    """Of what compiles the branches and bodies of cond, scan, map and while_loop."""

    def call(self: Any, tx: Any, *args: Any, **kwargs: Any) -> Any:
        if ours():
            line = show((tx.f_code.co_filename, tx.lineno or tx.f_code.co_firstlineno))
            refuse(
                GradientError(
                    f"open_torch() cannot keep the rule of {self.fn_cls.__name__}, applied at "
                    f"{line}: torch compiles the branches and bodies of cond, scan, map and "
                    "while_loop without the rules in them. Apply it outside, or put a rule of "
                    "graphgrad in its place"
                )
            )
        return before(self, tx, *args, **kwargs)

    return call


def _differentiated(before: Any, ours: Callable[[], bool], refuse: Any) -> Any:
    """Of what torch.func.grad, vjp and jacrev begin with."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if ours():
            refuse(
                GraphError(
                    "open_torch() cannot open torch.func.grad, vjp, jacrev and functions built "
                    f"on them, at {innermost()}: torch.export does not record them. Take "
                    "torch.autograd.grad(..., create_graph=True), or gg.gradients of what was "
                    "opened"
                )
            )
        return before(*args, **kwargs)

    return call


def _seeded(before: Any, ours: Callable[[], bool], refuse: Any) -> Any:
    """Of what chooses the numbers that are drawn next."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if ours() and is_users(sys._getframe(1).f_code.co_filename):
            refuse(
                GraphError(
                    f"open_torch() cannot keep torch.{before.__name__}, at {innermost()}: a graph "
                    "draws numbers of its own, new ones in each run. Make the numbers outside, and "
                    "give them as a buffer or an argument"
                )
            )
        return before(*args, **kwargs)

    return call


_GUARDS = (
    (torch.Tensor, "register_hook", _hook("register_hook")),
    (
        torch.Tensor,
        "register_post_accumulate_grad_hook",
        _hook("register_post_accumulate_grad_hook"),
    ),
    (_graph.saved_tensors_hooks, "__enter__", _saved_hooks),
    (torch.Tensor, "grad_fn", _grad_fn),
    (torch.Tensor, "data", _data),
    (_MODULE, "__init__", _made),
    (_MODULE, "__setattr__", _attribute),
    (_dynamo.AutogradFunctionVariable, "call_apply", _compiled_rule),
    (_transforms, "grad_increment_nesting", _differentiated),
    *[
        (owner, name, _seeded)
        for owner in (torch, torch.random)
        for name in ("manual_seed", "seed", "set_rng_state")
    ],
)
"""An owner, what of it is replaced meanwhile, and what by."""
