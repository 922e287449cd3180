"""A module, a function or a program of torch with its arguments: exported, and built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ...base.errors import GradientError, GraphError, ShapeError
from ...base.length import Length
from ...ir.context import bodies_around
from ...ir.graph import Graph, current
from ...ir.node import Tensor
from ...ir.types import TensorType, compatible, type_of_array
from ...ops.base import as_tensor, constant
from ...ops.foreign.torch_arrays import array_of, check_tensor, dtype_of, type_of
from ...ops.foreign.torch_call import module_variables, refuse
from ...ops.sources import placeholder
from ..reports import OpenReport, Tally
from ..torch_trace import watched
from .building import TorchBuilding, inputs_of
from .guards import contents_kept
from .tracing import (
    INSTEAD,
    WHO,
    FlatCall,
    TorchProgram,
    check_hooks,
    exported,
    note_unknown,
    reopened,
)

__all__ = ["TorchOpening", "built", "module_of", "opened", "opening_of", "reported", "variables"]

torch: Any = import_module("torch")
_fake: Any = import_module("torch._subclasses.fake_tensor")
_pytree: Any = import_module("torch.utils._pytree")


_ROOT = "module."


class TorchOpening(NamedTuple):
    """A module or function with its arguments, exported.

    program  what torch.export made
    types    of the tensors that it takes
    own      its parameters and buffers, by what the program calls them
    root     what stands before their names
    owner    the module that has them, or else what is opened
    """

    program: TorchProgram
    types: list[TensorType]
    own: dict[str, Any]
    root: str
    owner: Any

    @property
    def names(self) -> dict[str, str]:
        """Their names in the state_dict; of those that are the same tensor that of the first."""
        first: dict[int, str] = {}
        return {
            at: first.setdefault(id(t), at.removeprefix(self.root)) for at, t in self.own.items()
        }

    @property
    def written(self) -> list[str]:
        """The names of the buffers that it writes."""
        return [at.removeprefix(self.root) for at in self.program.written]


def opened(fn: Any, args: Sequence[Any], parameters: str, updates: bool) -> Any:
    """What `open_torch` returns."""
    leaves = [leaf for leaf in _pytree.tree_leaves(tuple(args)) if _is_array(leaf)]
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            check_tensor(leaf, "an argument")
            if leaf.requires_grad:
                raise GradientError(
                    f"open_torch() is given a tensor of torch of shape {list(leaf.shape)} that "
                    "requires a gradient, and would make it a constant: give a tensor of the "
                    "graph, or .detach() it"
                )
    opening = opening_of(fn, args, parameters == "variables")
    _check_writes(opening, parameters, updates, fn)
    tally, known = Tally(), dict[Any, Any]()
    _try(opening, known, updates, tally)
    tally.check(WHO, INSTEAD)
    named = variables(opening) if parameters == "variables" else _constants(opening)
    made, new = built(opening, named, [_input(leaf) for leaf in leaves], updates, known)
    return (made, {named[at]: y for at, y in new.items()}) if updates else made


def reported(fn: Any, args: Sequence[Any], parameters: str) -> OpenReport:
    """What `open_report` returns."""
    opening = opening_of(fn, args, parameters == "variables")
    tally = Tally()
    try:
        _try(opening, {}, True, tally)
    except Exception:
        if not tally.report({}).missing:
            raise
    names = opening.names
    weights = {names[at]: type_of(t) for at, t in opening.own.items()}
    return tally.report(weights if parameters == "variables" else {}, opening.written)


def opening_of(
    fn: Any, args: Sequence[Any], differentiable: bool = True, owner: Any = None
) -> TorchOpening:
    """A module or function with its arguments, exported.

    differentiable: whether what it reads besides is to have its gradient.
    owner: the module that has its parameters, where that is not plain to see.
    """
    leaves, structure = _pytree.tree_flatten(tuple(args))
    places = [i for i, leaf in enumerate(leaves) if _is_array(leaf)]
    types = [_type_of(leaves[i]) for i in places]
    owner = module_of(fn) if owner is None else owner
    if isinstance(fn, torch.export.ExportedProgram):
        program = reopened(fn)
        _check_types(program, types)
        return TorchOpening(program, types, _own(program), "", fn)
    if owner is not None:
        check_hooks(owner)

    def call(*tensors: Any) -> Any:
        values = list(leaves)
        for i, value in zip(places, tensors, strict=True):
            values[i] = value
        return fn(*_pytree.tree_unflatten(values, structure))

    with nullcontext() if owner is None else contents_kept(owner):
        program = _traced(FlatCall(call, owner), types, fn)
    if differentiable:
        _check_captured(program, call, types, owner, fn)
    return TorchOpening(program, types, _own(program), _ROOT, fn if owner is None else owner)


def variables(opening: TorchOpening) -> dict[str, Tensor]:
    """A variable of the current graph for each parameter and buffer."""
    names = opening.names
    wanted = {name: opening.own[at] for at, name in names.items()}
    made = module_variables(opening.owner, wanted, "")
    return {at: made[name] for at, name in names.items()}


def _constants(opening: TorchOpening) -> dict[str, Tensor]:
    return {
        at: constant(np.array(array_of(t)), name=at.removeprefix(opening.root))
        for at, t in opening.own.items()
    }


def built(
    opening: TorchOpening,
    named: Mapping[str, Tensor],
    tensors: Sequence[Tensor],
    updates: bool,
    known: dict[Any, Any] | None = None,
    tally: Tally | None = None,
) -> tuple[Any, dict[str, Any]]:
    """What the call returns, in the current graph, and the new values of what it writes."""
    program = opening.program
    inputs = inputs_of(program, named, tensors)
    made = TorchBuilding(program, {} if known is None else known, tally).run(inputs, updates)
    specs = [program.signature.output_specs[i] for i in program.outputs(updates)]
    rows = list(zip(specs, made, strict=True))
    outputs = [y for spec, y in rows if spec.kind.name == "USER_OUTPUT"]
    result = _pytree.tree_unflatten(outputs, program.exported.call_spec.out_spec)
    return result, {spec.target: y for spec, y in rows if spec.kind.name != "USER_OUTPUT"}


def module_of(fn: Any) -> Any:
    """The module whose parameters a call reads: itself, or that of a method."""
    for value in (fn, getattr(fn, "__self__", None)):
        if isinstance(value, torch.nn.Module):
            return value
    return None


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, Tensor | np.ndarray | np.generic | torch.Tensor)


def _type_of(leaf: Any) -> TensorType:
    if isinstance(leaf, torch.Tensor):
        if not leaf.is_meta:
            check_tensor(leaf, "an argument")
        return type_of(leaf)
    return leaf.type if isinstance(leaf, Tensor) else type_of_array(np.asarray(leaf))


def _input(leaf: Any) -> Tensor:
    return as_tensor(np.array(array_of(leaf)) if isinstance(leaf, torch.Tensor) else leaf)


def _traced(call: Any, types: Sequence[TensorType], fn: Any) -> TorchProgram:
    try:
        return exported(call, types)
    except Exception as error:
        said = ", ".join(map(repr, types))
        error.add_note(
            f"while open_torch() exported {_name_of(fn)} for tensors "
            f"of the types {said}, as torch.export does; gg.interop.from_torch takes it as one node"
            + _stating(types)
        )
        raise


def _stating(types: Sequence[TensorType]) -> str:
    """What to say of open lengths, by a name of theirs."""
    lengths = [d for t in types for d in t.shape if not isinstance(d, int)]
    if not lengths:
        return ""
    name = next((n for d in lengths if isinstance(d, Length) for n in sorted(d.names)), None)
    facts = f"gg.assume({name} >= 8)" if name else "a name for them and gg.assume"
    return f"\nState what holds for open lengths: {facts}, or make them known"


def _name_of(fn: Any) -> str:
    return str(getattr(fn, "__name__", type(fn).__name__))


def _own(program: TorchProgram) -> dict[str, Any]:
    """The parameters and buffers of a program, by name."""
    made = program.exported
    found = {}
    for spec in program.signature.input_specs:
        if spec.kind.name in ("PARAMETER", "BUFFER"):
            held = made.state_dict if spec.target in made.state_dict else made.constants
            found[spec.target] = held[spec.target]
            check_tensor(held[spec.target], f"the parameter {spec.target!r}")
    return found


def _check_writes(opening: TorchOpening, parameters: str, updates: bool, fn: Any) -> None:
    """Raise for what would be lost."""
    written, name = ", ".join(opening.written), _name_of(fn)
    if written and not updates:
        raise GraphError(
            f"{name} writes {written}, as batch normalisation in training mode does with its "
            "statistics. A graph would lose that: call .eval() first, or say updates=True and have "
            "gg.compile() write them"
        )
    if written and parameters == "constants":
        raise GraphError(f'{name} writes {written}: with parameters="constants" none is a variable')


def _check_captured(
    program: TorchProgram, call: Any, types: Sequence[TensorType], owner: Any, fn: Any
) -> None:
    """GradientError for tensors that are read besides and whose gradient would be lost."""
    lifted = [s.target for s in program.signature.input_specs if s.kind.name == "CONSTANT_TENSOR"]
    if not any(program.exported.constants[at].is_floating_point() for at in lifted):
        return
    known = {id(p) for p in owner.parameters()} if owner is not None else set()
    with torch.enable_grad():
        seen = watched(call, types).captured  # views of what was captured are fake
    captured = [t for t in seen if id(t) not in known and not isinstance(t, _fake.FakeTensor)]
    refuse(_name_of(fn), (), captured)


def _check_types(program: TorchProgram, types: Sequence[TensorType]) -> None:
    """ShapeError where an exported program is for other tensors."""
    nodes = [node for node in program.module.graph.nodes if node.op == "placeholder"]
    specs = zip(nodes, program.signature.input_specs, strict=True)
    wanted = [node.meta["val"] for node, spec in specs if spec.kind.name == "USER_INPUT"]
    if len(wanted) != len(types):
        raise ShapeError(f"the program takes {len(wanted)} tensors, and got {len(types)}")
    for i, (value, given) in enumerate(zip(wanted, types, strict=True)):
        shape = tuple(n if isinstance(n, int) else None for n in value.shape)
        fits = len(shape) == len(given.shape) and compatible(given.shape, shape)
        open_here = any(
            not isinstance(d, int) and n is not None
            for d, n in zip(given.shape, shape, strict=False)
        )
        if not fits or open_here or dtype_of(value) != given.dtype:
            raise ShapeError(
                f"the program was exported for {value.dtype} of the shape {list(value.shape)} as "
                f"input {i}, and got {given!r}"
            )


def _try(opening: TorchOpening, known: dict[Any, Any], updates: bool, tally: Tally) -> None:
    """Build in a graph of its own, so that an error leaves nothing behind."""
    note_unknown(opening.program, updates, tally)
    around = [stated for graph in bodies_around(current().graph) for stated in graph.assumptions]
    with Graph() as trial:
        trial.assumptions = around
        types = {at: type_of(t) for at, t in opening.own.items()}
        named = {at: placeholder(t.shape, t.dtype) for at, t in types.items()}
        tensors = [placeholder(t.shape, t.dtype) for t in opening.types]
        try:
            built(opening, named, tensors, updates, known, tally)
        except Exception:
            tally.check(WHO, INSTEAD)
            raise
