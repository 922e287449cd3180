"""Programs of PyTorch as they are exported: their nodes, what of them has a form, their lines."""

from __future__ import annotations

import copy
import re
import threading
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from ...base.errors import GradientError
from ...base.length import Length
from ...base.position import Position, show
from ...ir.types import TensorType
from ...ops.foreign.torch_arrays import torch_dtype
from ..reports import Tally
from ..torch_trace import STARTS, lengths_for
from .functions import STEP, AppliedFunction, is_users, kept
from .guards import guarded
from .table import LEFT_OUT, form_of, name_of
from .writes import check_unseen_writes, written_by

__all__ = [
    "HIGHER",
    "INSTEAD",
    "SYMBOLIC",
    "WHO",
    "FlatCall",
    "TorchProgram",
    "check_hooks",
    "exported",
    "is_known",
    "note_unknown",
    "position_of",
    "read_nodes",
    "reopened",
    "scope_of",
]

torch: Any = import_module("torch")
_export: Any = import_module("torch.export")
_tracer: Any = import_module("torch.fx.proxy").TracerBase
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
WHO = "open_torch()"
INSTEAD = "gg.interop.from_torch takes such a module as one node"
HIGHER = ("cond", "while_loop", "scan", "map_impl")
"""Steps of torch that call programs of their own."""
_GRAD_MODE = "wrap_with_set_grad_enabled"
_WRONG = {"multilabel_margin_loss_forward"}
"""Operators whose decompositions by torch have other values."""
_DETACH_ = torch.ops.aten.detach_.default
_tracing = threading.RLock()


class FlatCall(torch.nn.Module):  # type: ignore[misc]
    """A function of flat tensors, as torch.export takes it; `module` has the parameters."""

    def __init__(self, fn: Callable[..., Any], module: Any = None) -> None:
        super().__init__()
        self._fn = fn
        self.module = module
        self.training = module is not None and module.training

    def forward(self, *tensors: Any) -> Any:
        """What the function returns."""
        return self._fn(*tensors)


class TorchProgram:
    """What torch.export made of a module, functional and with its gradients' rules kept.

    steps  the applications of functions of torch.autograd in it
    """

    def __init__(self, exported: Any, steps: Sequence[AppliedFunction]) -> None:
        self.exported = exported
        self.steps = steps
        self.module = exported.graph_module
        self.signature = exported.graph_signature

    def outputs(self, with_writes: bool) -> list[Any]:
        """The places of outputs that are wanted."""
        kinds = ("USER_OUTPUT", "BUFFER_MUTATION") if with_writes else ("USER_OUTPUT",)
        specs = enumerate(self.signature.output_specs)
        return [i for i, spec in specs if spec.kind.name in kinds]

    @property
    def written(self) -> list[str]:
        """The names of buffers that it writes."""
        specs = self.signature.output_specs
        return [spec.target for spec in specs if spec.kind.name == "BUFFER_MUTATION"]


def exported(module: Any, types: Sequence[TensorType], differentiable: bool = True) -> TorchProgram:
    """A module, called with tensors of these types, as a program.

    Those of floating dtypes require gradients, as code of theirs may ask. differentiable: whether
    its own derivative counts, which writes may spoil.
    """
    samples = [
        _sample(shape, t) for t, shape in zip(types, lengths_for(types, STARTS[0]), strict=True)
    ]
    shapes = (tuple(_dynamic(t) for t in types),) if any(not t.static for t in types) else None
    with _quietly() as steps:
        made = _export.export(module, tuple(samples), dynamic_shapes=shapes, strict=False)
        if differentiable:
            check_unseen_writes(made, position_of)
        return TorchProgram(_without_grad_modes(made).run_decompositions(_kept_whole()), steps)


def _sample(shape: Sequence[int], t: TensorType) -> Any:
    """A tensor of a type; no leaf, for those that require gradients cannot be written into."""
    made = torch.empty(shape, dtype=torch_dtype(t.dtype), requires_grad=t.differentiable)
    return made.clone() if t.differentiable else made


def reopened(program: Any) -> TorchProgram:
    """A program that was exported before."""
    if not _is_functional(program):
        module = copy.deepcopy(program.graph_module)
        program = _export.ExportedProgram(
            module,
            module.graph,
            program.graph_signature,
            program.state_dict,
            program.range_constraints,
            program.module_call_graph,
            program.example_inputs,
            program.constants,
        )
        check_unseen_writes(program, position_of)
    with _quietly() as steps:
        return TorchProgram(_without_grad_modes(program).run_decompositions(_kept_whole()), steps)


def _is_functional(program: Any) -> bool:
    """Whether nothing in it, or in the programs in it, is to be rewritten."""
    nodes = [n for part in _parts(program) for n in part.graph.nodes]
    return not any(_is(n, _GRAD_MODE) or n.target is _DETACH_ for n in nodes)


def _parts(program: Any) -> list[Any]:
    return [part for part in program.graph_module.modules() if hasattr(part, "graph")]


@contextmanager
def _quietly() -> Iterator[list[AppliedFunction]]:
    """A block in which torch traces: nothing is lost without a word, and torch says no word."""
    steps: list[AppliedFunction] = []
    with (
        _tracing,
        kept(steps),
        guarded(),
        _with_lines(),
        _as_once_differentiated(),
        _inference_as_no_grad(),
        torch.enable_grad(),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield steps


def _dynamic(t: TensorType) -> dict[int, Any]:
    """The axes of open lengths: a dimension of torch for each, equal ones with equal names."""
    return {axis: _dimension(d) for axis, d in enumerate(t.shape) if not isinstance(d, int)}


def _dimension(d: Any) -> Any:
    text = str(d)
    if isinstance(d, Length) and d.name is None and len(d.names) == 1:
        (name,) = d.names
        at = [int(d.at({name: n})) for n in (100, 101, 202)]
        slope = at[1] - at[0]
        rest = at[0] - 100 * slope
        if slope > 0 and at[2] == 202 * slope + rest:
            dim = _export.Dim(_identifier(name), **_range(Length(name)))
            dim = dim if slope == 1 else slope * dim
            return dim if rest == 0 else dim + rest
    return _export.Dim(_identifier(text), **_range(d))


def _range(d: Any) -> dict[str, int]:
    """What the graph says of a length: how much it is at least and at most."""
    if not isinstance(d, Length):
        return {}
    at_least = bisect_left(_TRIED, True, key=lambda n: (d >= n) is not True) - 1
    at_most = bisect_left(_TRIED, True, key=lambda n: (d <= n) is True)
    found = {"min": at_least} if at_least > 0 else {}
    return found | ({"max": at_most} if at_most < len(_TRIED) else {})


_TRIED = range(1 << 20)


def _identifier(text: str) -> str:
    """A name for torch, which takes some of its own for functions."""
    word = re.sub(r"\W", "_", text)
    return f"length_{word}" if word == text else f"length_{word}_{abs(hash(text))}"


@cache
def _kept_whole() -> Any:
    """The decompositions of torch, without those of operators that have a form or are refused."""
    table = _export.default_decompositions()
    for target in list(table):
        if form_of(target) is not None or name_of(target) in _WRONG:
            table.pop(target)
    return table


@contextmanager
def _with_lines() -> Iterator[None]:
    """A block in which torch notes the lines of functions too, not of `forward` alone."""
    name = "_filter_traceback_frames"
    before = vars(_tracer).get(name)
    if before is None:  # of another version of torch, which notes what it notes
        yield
        return
    setattr(_tracer, name, lambda _tracer, frames: _users(frames))
    try:
        yield
    finally:
        setattr(_tracer, name, before)


def _users(frames: Any) -> Any:
    return type(frames).from_list([frame for frame in frames if is_users(frame.filename)])


@contextmanager
def _as_once_differentiated() -> Iterator[None]:
    """A block in which gradients that torch computes without create_graph have none themselves."""
    grad = torch.autograd.grad

    def call(*args: Any, **kwargs: Any) -> Any:
        made = grad(*args, **kwargs)
        again = kwargs.get("create_graph", args[4] if len(args) > 4 else False)
        return made if again else tuple(dx if dx is None else dx.detach() for dx in made)

    torch.autograd.grad = call
    try:
        yield
    finally:
        torch.autograd.grad = grad


@contextmanager
def _inference_as_no_grad() -> Iterator[None]:
    """A block in which torch.inference_mode is torch.no_grad, which torch.export writes down."""
    kind = torch.inference_mode
    enter, leave = kind.__enter__, kind.__exit__
    guards: list[Any] = []

    def entered(self: Any) -> None:
        guards.append(torch.set_grad_enabled(torch.is_grad_enabled() and not self.mode))

    def left(self: Any, *_: Any) -> None:
        guards.pop().__exit__(None, None, None)

    kind.__enter__, kind.__exit__ = entered, left
    try:
        yield
    finally:
        kind.__enter__, kind.__exit__ = enter, leave


def check_hooks(module: Any) -> None:
    """GradientError for hooks that change gradients on a module or its parameters."""
    common = torch.nn.modules.module
    found = [
        f"{kind.strip('_')} on {path or type(module).__name__}"
        for path, part in module.named_modules()
        for kind in ("_backward_hooks", "_backward_pre_hooks")
        if getattr(part, kind, None)
    ]
    found += [
        f"{kind.strip('_')} on the parameter {name}"
        for name, parameter in module.named_parameters()
        for kind in ("_backward_hooks", "_post_accumulate_grad_hooks")
        if getattr(parameter, kind, None)
    ]
    if common._global_backward_hooks or common._global_backward_pre_hooks:
        found.append("backward hooks on all modules (torch.nn.modules.module)")
    if found:
        raise GradientError(
            f"open_torch() cannot keep {', '.join(found)}: their effect on gradients would be "
            "lost. Remove them, or put rules of graphgrad on the nodes"
        )


# --- torch.no_grad ------------------------------------------------------------------------------


def _without_grad_modes(program: Any) -> Any:
    """The program, in which what blocks of torch.no_grad read is detached."""
    if not any(_is(n, _GRAD_MODE) for part in _parts(program) for n in part.graph.nodes):
        return program
    _detach_in(program.graph_module, True)
    program.graph_module.recompile()
    return program


def _detach_in(module: Any, tracked: bool) -> None:
    detach = torch.ops.aten.detach.default
    for node in list(module.graph.nodes):
        if node.op == "placeholder" and not tracked:
            users = [user for user in node.users if not _is_nested(user)]
            readers = [user for user in users if node not in written_by(user)]
            if readers:
                with module.graph.inserting_after(_last_placeholder(module.graph)):
                    hidden = module.graph.call_function(detach, (node,))
                hidden.meta.update(node.meta)
                for user in readers:
                    user.replace_input_with(node, hidden)
        if _is(node, _GRAD_MODE):
            inner = getattr(module, node.args[1].target)
            _detach_in(inner, bool(node.args[0]))
            inner.recompile()
        elif node.op == "call_function" and any(_is(node, name) for name in HIGHER):
            for part in node.args:
                if getattr(part, "op", None) == "get_attr":
                    inner = getattr(module, part.target)
                    if hasattr(inner, "graph"):
                        _detach_in(inner, tracked)
                        inner.recompile()


def _is_nested(user: Any) -> bool:
    return user.op == "output" or (_is(user, _GRAD_MODE) and bool(user.args[0]))


def _last_placeholder(graph: Any) -> Any:
    return [node for node in graph.nodes if node.op == "placeholder"][-1]


def _is(node: Any, name: str) -> bool:
    return node.op == "call_function" and getattr(node.target, "__name__", "") == name


# --- what has a form ----------------------------------------------------------------------------


def read_nodes(graph: Any, outputs: Sequence[Any]) -> list[Any]:
    """The nodes of which something is read, in their order."""
    needed = {node for node in outputs if hasattr(node, "users")}
    kept = []
    for node in reversed(graph.nodes):
        if node in needed and node.op in ("call_function", "get_attr"):
            kept.append(node)
            needed.update(node.all_input_nodes)
    return kept[::-1]


def is_known(target: Any) -> bool:
    """Whether a step of a program can be built."""
    if target is STEP or form_of(target) is not None or name_of(target) in SYMBOLIC:
        return True
    return name_of(target) in HIGHER


def note_unknown(program: TorchProgram, with_writes: bool, tally: Tally) -> None:
    """Note every operator without a form, of the programs in it too."""
    (output,) = [node for node in program.module.graph.nodes if node.op == "output"]
    wanted = [output.args[0][i] for i in program.outputs(with_writes)]
    for node in _every(program.module, wanted):
        if node.op == "call_function" and not is_known(node.target):
            name = name_of(node.target)
            tally.refused(name, show(position_of(node)), LEFT_OUT.get(name, ""))


def _every(module: Any, wanted: Sequence[Any]) -> Iterator[Any]:
    """The nodes that are read, of a program and of all programs in it."""
    for node in read_nodes(module.graph, wanted):
        yield node
        inner: Any = getattr(module, node.target) if node.op == "get_attr" else None
        if hasattr(inner, "graph"):
            (output,) = [n for n in inner.graph.nodes if n.op == "output"]
            yield from _every(inner, output.all_input_nodes)


SYMBOLIC = {
    "sym_size.int",
    "sym_numel",
    "getitem",
    "add",
    "sub",
    "mul",
    "floordiv",
    "mod",
    "neg",
    "truediv",
    "pow",
    "sym_max",
    "sym_min",
    "sym_float",
    "sym_int",
    "ceil",
    "floor",
    "trunc",
}
"""Steps of lengths, which Python computes."""


# --- names and lines ----------------------------------------------------------------------------


def position_of(node: Any) -> Position | None:
    """The line of the user, in what was traced."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    for file, line in reversed(frames):
        if is_users(file):
            return file, int(line)
    return None


def scope_of(node: Any, root: str) -> str:
    """The path of the module that a node is of, below the one that was opened."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path = str(stack[-1][0]) if stack else ""
    path = re.sub(r"@\d+$", "", path)
    if path == root or path.startswith("_empty"):
        return ""
    return path.removeprefix(f"{root}.").replace(".", "/")
