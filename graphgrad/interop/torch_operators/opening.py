"""A module, a function or a program of torch with its arguments: exported, and built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ...base.errors import GraphError, ShapeError
from ...ir.context import bodies_around
from ...ir.graph import Graph, current
from ...ir.node import Tensor
from ...ir.types import TensorType, compatible
from ...ops.base import as_tensor, constant
from ...ops.foreign.torch_arrays import array_of, check_tensor, dtype_of, type_of
from ...ops.foreign.torch_call import module_variables, refuse
from ...ops.sources import placeholder
from ..torch_trace import watched
from .building import TorchBuilding, inputs_of
from .tracing import FlatCall, TorchProgram, check_hooks, check_known, exported, reopened

__all__ = ["opened"]

torch: Any = import_module("torch")
_fake: Any = import_module("torch._subclasses.fake_tensor")
_pytree: Any = import_module("torch.utils._pytree")


_STATE = "gg.assume(N >= 8), or make them known"


def opened(fn: Any, args: Sequence[Any], parameters: str, updates: bool) -> Any:
    """What `open_torch` returns."""
    leaves, structure = _pytree.tree_flatten(tuple(args))
    places = [i for i, leaf in enumerate(leaves) if _is_array(leaf)]
    types = [_type_of(leaves[i]) for i in places]
    owner = _owner(fn)
    if isinstance(fn, torch.export.ExportedProgram):
        program, root = reopened(fn), ""
        _check_types(program, types)
    else:
        if owner is not None:
            check_hooks(owner)

        def call(*tensors: Any) -> Any:
            values = list(leaves)
            for i, value in zip(places, tensors, strict=True):
                values[i] = value
            return fn(*_pytree.tree_unflatten(values, structure))

        program, root = _traced(FlatCall(call, owner), types, fn), "module."
        if parameters != "constants":
            _check_captured(program, call, types, owner, fn)
    own = _own(program)
    _check(program, own, parameters, updates, fn)
    check_known(program, updates)
    known: dict[Any, Any] = {}
    _try(program, known, own, types, updates)
    if parameters == "constants":
        named = {
            at: constant(np.array(array_of(t)), name=_short(at, root)) for at, t in own.items()
        }
    else:
        named = _variables(fn if owner is None else owner, own, root)
    tensors = [_input(leaves[i]) for i in places]
    made = TorchBuilding(program, known).run(inputs_of(program, named, tensors), updates)
    return _returned(program, made, named, updates)


def _owner(fn: Any) -> Any:
    """The module whose parameters a call reads: itself, or that of a method."""
    for value in (fn, getattr(fn, "__self__", None)):
        if isinstance(value, torch.nn.Module):
            return value
    return None


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, Tensor | np.ndarray | np.generic | torch.Tensor)


def _type_of(leaf: Any) -> TensorType:
    if isinstance(leaf, torch.Tensor):
        check_tensor(leaf, "an argument")
        return type_of(leaf)
    return leaf.type if isinstance(leaf, Tensor) else as_tensor_type(leaf)


def as_tensor_type(array: Any) -> TensorType:
    """The type of an array."""
    return constant(np.asarray(array)).type


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
            + (
                ""
                if all(t.static for t in types)
                else "\nState what holds of open lengths: " + _STATE
            )
        )
        raise


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


def _check(
    program: TorchProgram, own: Mapping[str, Any], parameters: str, updates: bool, fn: Any
) -> None:
    """Raise for what would be lost."""
    written = ", ".join(_short(at, "module.") for at in program.written)
    name = _name_of(fn)
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


def _try(
    program: TorchProgram,
    known: dict[Any, Any],
    own: Mapping[str, Any],
    types: Sequence[TensorType],
    updates: bool,
) -> None:
    """Build in a graph of its own, so that an error leaves nothing behind."""
    around = [stated for graph in bodies_around(current().graph) for stated in graph.assumptions]
    with Graph() as trial:
        trial.assumptions = around
        named = {at: placeholder(type_of(t).shape, type_of(t).dtype) for at, t in own.items()}
        tensors = [placeholder(t.shape, t.dtype) for t in types]
        TorchBuilding(program, known).run(inputs_of(program, named, tensors), updates)


def _short(at: str, root: str) -> str:
    return at.removeprefix(root)


def _variables(key: Any, own: Mapping[str, Any], root: str) -> dict[str, Tensor]:
    """A variable for each parameter and buffer; one for those that are the same tensor."""
    first: dict[int, str] = {}
    names = {at: first.setdefault(id(t), _short(at, root)) for at, t in own.items()}
    wanted = {names[at]: t for at, t in own.items()}
    made = module_variables(key, wanted, "")
    return {at: made[name] for at, name in names.items()}


def _returned(
    program: TorchProgram, made: list[Any], named: Mapping[str, Any], updates: bool
) -> Any:
    """What the call returned, and the new values of the variables that it writes."""
    specs = [program.signature.output_specs[i] for i in program.outputs(updates)]
    rows = list(zip(specs, made, strict=True))
    outputs = [y for spec, y in rows if spec.kind.name == "USER_OUTPUT"]
    result = _pytree.tree_unflatten(outputs, program.exported.call_spec.out_spec)
    if not updates:
        return result
    return result, {named[s.target]: y for s, y in rows if s.kind.name != "USER_OUTPUT"}
