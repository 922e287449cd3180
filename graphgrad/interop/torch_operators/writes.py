"""Writes that torch's gradients do not see, refused: a graph has values, and no writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ...base.errors import GradientError
from ...base.position import Position, show
from .table import name_of

__all__ = ["check_unseen_writes", "written_by"]

torch: Any = import_module("torch")
_DETACH = torch.ops.aten.detach.default
_GRAD_MODE = "wrap_with_set_grad_enabled"


@dataclass(eq=False)
class _SharedMemory:
    """What tensors share; tracked where one of them has a gradient, and named if a parameter."""

    tracked: bool = False
    name: str = ""


@dataclass(frozen=True)
class _View:
    """A tensor of it; hidden where its own gradient is not tracked."""

    memory: _SharedMemory
    hidden: bool = False

    @property
    def tracked(self) -> bool:
        """Whether it has a gradient."""
        return self.memory.tracked and not self.hidden


def check_unseen_writes(program: Any, position_of: Callable[[Any], Position | None]) -> None:
    """GradientError for what is written in torch.no_grad, or through detach, and has a gradient.

    program: as torch.export first gives it, with writes. `detach_` is made `detach` in it, for what
    is read afterwards is its result.
    """
    holders = [node for node in program.graph.nodes if node.op == "placeholder"]
    given = []
    for node, spec in zip(holders, program.graph_signature.input_specs, strict=True):
        own = spec.kind.name == "PARAMETER"
        tracked = (own or spec.kind.name == "USER_INPUT") and _is_floating(node)
        given.append(
            _View(_SharedMemory(tracked, spec.target.removeprefix("module.") if own else ""))
        )
    _Writes(position_of).run(program.graph_module, given, True)


class _Writes:
    def __init__(self, position_of: Callable[[Any], Position | None]) -> None:
        self._position_of = position_of

    def run(self, module: Any, given: Sequence[Any], tracks: bool) -> tuple[Any, ...]:
        """What the outputs are views of."""
        inputs = iter(given)
        env: dict[Any, Any] = {}
        for node in module.graph.nodes:
            if node.op == "placeholder":
                env[node] = next(inputs)
            elif node.op == "output":
                returned = node.args[0] if isinstance(node.args[0], list | tuple) else node.args
                return tuple(env.get(y, _View(_SharedMemory())) for y in returned)
            elif node.op == "call_function":
                env[node] = self._called(module, node, env, tracks)
        return ()

    def _called(self, module: Any, node: Any, env: dict[Any, Any], tracks: bool) -> Any:
        name = name_of(node.target)
        if name == _GRAD_MODE:
            inner = getattr(module, node.args[1].target)
            given = [env.get(x, _View(_SharedMemory())) for x in node.args[2:]]
            return self.run(inner, given, bool(node.args[0]))
        if name == "getitem" and isinstance(env.get(node.args[0]), tuple):
            return env[node.args[0]][node.args[1]]
        for inner in _inner(module, node):
            holders = [x for x in inner.graph.nodes if x.op == "placeholder"]
            self.run(
                inner, [_View(_SharedMemory(tracks and _is_floating(x))) for x in holders], tracks
            )
        read = [view for x in node.all_input_nodes for view in _views(env.get(x))]
        tracked = tracks and any(view.tracked for view in read)
        if name == "detach_" and tracks:
            node.target = _DETACH
        else:
            for x in written_by(node):
                for view in _views(env.get(x)):
                    self._check(node, view, tracks)
                    view.memory.tracked |= tracked and _is_floating(x)
        source = next((view for x in _shared(node) for view in _views(env.get(x))), None)
        if source is not None:
            return _View(
                source.memory, source.hidden or not tracks or name in ("detach", "detach_")
            )
        new = name == "detach" or name.split(".")[0].endswith("_like") or name.startswith("new_")
        return _View(_SharedMemory(tracked and not new and _is_floating(node)))

    def _check(self, node: Any, view: _View, tracks: bool) -> None:
        if view.memory.tracked and (view.hidden or not tracks):
            what = f"the parameter {view.memory.name!r}" if view.memory.name else "a tensor"
            raise GradientError(
                f"open_torch() cannot keep the write of {name_of(node.target)} into {what} at "
                f"{show(self._position_of(node))}: it has a gradient, and torch does not see the "
                "write (in torch.no_grad, or through detach or .data). Compute a new tensor, as in "
                "y + (new - y).detach(), and write parameters outside of the call"
            )


def _views(state: Any) -> Iterator[_View]:
    if isinstance(state, tuple):
        for each in state:
            yield from _views(each)
    elif state is not None:
        yield state


def _inner(module: Any, node: Any) -> list[Any]:
    parts = [getattr(module, x.target) for x in node.all_input_nodes if x.op == "get_attr"]
    return [part for part in parts if hasattr(part, "graph")]


def _is_floating(node: Any) -> bool:
    value = node.meta.get("val")
    values = value if isinstance(value, list | tuple) else [value]
    kinds = [v.dtype for v in values if isinstance(v, torch.Tensor)]
    return any(dtype.is_floating_point or dtype.is_complex for dtype in kinds)


def _arguments(node: Any) -> Iterator[tuple[Any, Any]]:
    schema = getattr(node.target, "_schema", None)
    for place, argument in enumerate(schema.arguments if schema is not None else ()):
        value = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
        for x in value if isinstance(value, list | tuple) else [value]:
            if isinstance(x, torch.fx.Node):
                yield argument.alias_info, x


def written_by(node: Any) -> list[Any]:
    """The nodes into whose results a node writes."""
    return [x for alias, x in _arguments(node) if alias is not None and alias.is_write]


def _shared(node: Any) -> list[Any]:
    """What its results may be views of."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return list(node.args[:1]) if name_of(node.target) == "getitem" else []
    if not any(y.alias_info is not None for y in schema.returns):
        return []
    return [x for alias, x in _arguments(node) if alias is not None]
