"""Nodes of torch as nodes of the current graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from ...base.errors import GradientError, GraphError
from ...base.length import Length
from ...base.position import show
from ...ir.graph import current
from ...ir.node import Tensor
from ...ir.types import TensorType, compatible
from ...ops.base import NO_GRAD, LengthValue, apply, as_tensor, constant
from ...ops.control import cond, scan, while_loop
from ...ops.foreign.torch_arrays import array_of, dtype_of
from ...ops.random.draws import Draw
from ...ops.shape.reshaping import reshape
from ...ops.sources import identity, placeholder, undefined_gradient
from ...regions.scopes import override_gradient
from ..opened import clean, gg, placed
from ..reports import Tally
from .functions import STEP, WRITES, AppliedFunction, applied, has_gradient
from .table import LEFT_OUT, form_of, name_of
from .tracing import (
    HIGHER,
    INSTEAD,
    SYMBOLIC,
    WHO,
    FlatCall,
    TorchProgram,
    exported,
    is_known,
    note_unknown,
    position_of,
    read_nodes,
    scope_of,
)

__all__ = ["TorchBuilding", "inputs_of"]

torch: Any = import_module("torch")
_ROOT = "module"


class TorchBuilding:
    """Builds a program on tensors.

    known  programs of functions of torch.autograd
    tally  what notes what became of its operators. Then what has no form is noted, too, and no
           error, where its results are tensors: zeros stand for it
    """

    def __init__(
        self, program: TorchProgram, known: dict[Any, Any], tally: Tally | None = None
    ) -> None:
        self._program = program
        self._known = known
        self._tally = tally
        self._lengths: dict[str, Any] = {}  # what torch calls open lengths

    def run(self, inputs: Sequence[Any], with_writes: bool = False) -> list[Any]:
        """Its outputs for these inputs, in the order of its signature; those wanted alone."""
        return self._run(self._program.module, inputs, self._program.outputs(with_writes))

    def _run(self, module: Any, inputs: Sequence[Any], wanted: Sequence[int] | None) -> list[Any]:
        graph = module.graph
        holders = [node for node in graph.nodes if node.op == "placeholder"]
        env: dict[Any, Any] = dict(zip(holders, inputs, strict=True))
        for node, x in env.items():
            self._note_lengths(node.meta.get("val"), x)
        (output,) = [node for node in graph.nodes if node.op == "output"]
        returned = output.args[0]
        returned = returned if isinstance(returned, list | tuple) else [returned]
        outputs = [returned[i] for i in wanted] if wanted is not None else list(returned)
        for node in read_nodes(graph, outputs):
            if node.op == "get_attr":
                env[node] = _attribute(module, node.target)
            else:
                build = partial(self._built, node, _read(node.args, env), _read(node.kwargs, env))
                made = self._at(node, build)
                value = node.meta.get("val")
                several = isinstance(value, list | tuple) or name_of(node.target) in HIGHER
                env[node] = tuple(made) if several or node.target is STEP else made[0]
        return [_read(y, env) for y in outputs]

    def _at(self, node: Any, build: Callable[[], Any]) -> Sequence[Any]:
        """What is built, with the scope and the line of a node."""
        graph, position = current().graph, position_of(node)
        start = len(graph.nodes)
        made = placed(clean(scope_of(node, _ROOT)), position, build)
        if self._tally is not None:
            new, name = graph.nodes[start:], name_of(node.target)
            through = node.target is STEP or name in SYMBOLIC or not is_known(node.target)
            self._tally.built(name, new, show(position), through=through)
            if not through and any(isinstance(each.op, Draw) for each in new):
                self._tally.drawn(name, show(position))
        return made

    def _refused(self, node: Any, why: str) -> list[Any]:
        """GraphError; or zeros, where it is noted."""
        tally = self._tally or Tally()
        if self._tally is None or is_known(node.target):
            tally.refused(name_of(node.target), show(position_of(node)), why)
        return self._zeros(node, tally)

    def _zeros(self, node: Any, tally: Tally) -> list[Any]:
        """What stands for the results of a node: of lengths that nothing says, a placeholder."""
        found = node.meta.get("val")
        values = list(found) if isinstance(found, list | tuple) else [found]
        if self._tally is None or not all(isinstance(v, torch.Tensor) for v in values):
            tally.check(WHO, INSTEAD)
        shapes = [tuple([self._lengths.get(str(n), n) for n in v.shape]) for v in values]
        return [_stand_in(s, dtype_of(v)) for s, v in zip(shapes, values, strict=True)]

    def _note_lengths(self, value: Any, y: Any) -> None:
        """Note what torch calls the open lengths of a tensor."""
        if self._tally is not None and isinstance(value, torch.Tensor) and isinstance(y, Tensor):
            pairs = zip(value.shape, y.shape, strict=True)
            self._lengths.update({str(n): d for n, d in pairs if isinstance(n, torch.SymInt)})

    def _built(self, node: Any, args: Any, kwargs: Any) -> Any:
        target, name = node.target, name_of(node.target)
        if not is_known(target):
            return self._refused(node, LEFT_OUT.get(name, ""))
        if target is STEP:
            return self._kept(node, applied(args[0]), list(args[1]))
        match name:
            case "cond":
                return self._cond(*args)
            case "while_loop":
                return self._while(*args)
            case "scan":
                return self._scan(*args)
            case "map_impl":
                return self._map(*args)
        form = form_of(target)
        if form is None or not hasattr(target, "_schema"):
            return [self._computed(node, name, args)]
        positional, named = _by_schema(target._schema, args, kwargs)
        values = node.meta.get("val")
        several = isinstance(values, list | tuple)
        values = list(values) if several else [values]
        try:
            made = form(*positional, **named, out=_working_dtype(node, values[0]), node=node)
        except NotImplementedError as error:
            return self._refused(node, f"with {error}")
        made = list(made) if several else [made]
        made = [_checked(name, y, value) for y, value in zip(made, values, strict=False)]
        for value, y in zip(values, made, strict=False):
            self._note_lengths(value, y)
        return made

    def _computed(self, node: Any, name: str, args: Sequence[Any]) -> Any:
        """A step of lengths and numbers, or a part of a result."""
        try:
            return _computed(name, node.target, args)
        except NotImplementedError as error:
            return self._refused(node, f"with {error}")[0]

    # --- loops and choices ---

    def _cond(self, test: Any, then: Any, other: Any, operands: Any = ()) -> Any:
        if not isinstance(test, Tensor):
            return self._run(then if test else other, operands, None)

        def taking(part: Any) -> Callable[[], tuple[Tensor, ...]]:
            return lambda: tuple(map(_own, self._run(part, operands, None)))

        made = cond(reshape(test, ()), taking(then), taking(other))
        return made if isinstance(made, tuple) else (made,)

    def _while(self, test: Any, body: Any, init: Any, more: Any = ()) -> Any:
        def goes_on(carry: Any) -> Tensor:
            return reshape(self._run(test, [*carry, *more], None)[0], ())

        def run(carry: Any) -> Any:
            return tuple(self._run(body, [*carry, *more], None))

        return while_loop(goes_on, run, tuple(as_tensor(x) for x in init))

    def _scan(self, body: Any, init: Any, rows: Any, more: Any = ()) -> Any:
        count = len(init)

        def run(carry: Any, row: Any) -> Any:
            made = self._run(body, [*carry, *row, *more], None)
            return tuple(made[:count]), tuple(map(_own, made[count:]))

        last, ys = scan(run, tuple(init), tuple(rows))
        return [*last, *ys]

    def _map(self, body: Any, rows: Any, more: Any = ()) -> Any:
        def run(carry: Any, row: Any) -> Any:
            return carry, tuple(map(_own, self._run(body, [*row, *more], None)))

        return list(scan(run, constant(0, "int64"), tuple(rows))[1])

    # --- rules ---

    def _kept(self, node: Any, step: AppliedFunction, xs: list[Tensor]) -> list[Tensor]:
        """A region; or zeros, where it is noted that its rule would be lost."""
        try:
            return self._stepped(step, xs)
        except GradientError as error:
            if self._tally is None:
                raise
            why = " ".join(str(error).partition(f"{step.where}: ")[2].split())
            self._tally.refused(step.name, step.where, why, error)
            return self._zeros(node, self._tally)

    def _stepped(self, step: AppliedFunction, xs: list[Tensor]) -> list[Tensor]:
        """A region whose rule is the backward of a function of torch.autograd."""
        types = [x.type for x in xs]
        program = self._traced(step, "forward", step.forward_of, types)
        inside = TorchBuilding(program, self._known, self._tally)
        places = {t: i for i, t in enumerate(dict.fromkeys(xs))}
        rule = BackwardRule(self, step, [places[t] for t in xs])
        count, inputs = len(step.stopped), inputs_of(program, {}, xs)
        values = zip(inside.outputs(), step.stopped, strict=False)
        ruled = any(has_gradient(y) and not stopped for y, stopped in values)
        with override_gradient(rule, inputs=list(places)) if ruled else nullcontext() as region:
            seen: set[Tensor] = set()
            outputs = []
            made = inside.run(inputs)
            for y in made[:count]:
                own = y.node.region is region and y not in seen
                outputs.append(y if own else identity(y))
                seen.add(y)
            if region is not None:
                region.declare(outputs=outputs)
        if ruled:
            rule.kept = made[count:]
            flags = zip(outputs, step.stopped, strict=True)
            given = [y.type.differentiable and not stopped for y, stopped in flags]
            rule.pulled(types, [y.type for y in (*outputs, *rule.kept)], given)
            if self._tally is not None:
                self._tally.rule(step.name, step.where)
        return [*outputs, *made[count:]]

    def outputs(self) -> list[Any]:
        """What torch knows of the outputs."""
        (output,) = [node for node in self._program.module.graph.nodes if node.op == "output"]
        return [_value(y) for y in output.args[0]]

    def _traced(
        self,
        step: AppliedFunction,
        part: str,
        fn: Callable[..., Any],
        types: Sequence[TensorType],
        more: Any = (),
    ) -> TorchProgram:
        """A part of a function of torch.autograd as a program, traced once for equal ones."""
        key = part, step.key, tuple(types), more
        if key not in self._known:
            try:
                program = exported(FlatCall(fn), types, part != "forward")
                tally = Tally()
                note_unknown(program, True, tally)
                tally.check(WHO, INSTEAD)
                if any(
                    s.kind.name == "USER_INPUT_MUTATION" for s in program.signature.output_specs
                ):
                    raise GradientError(f"it {WRITES}")
            except Exception as error:
                said = str(error).split("\n\n")[0]
                raise GradientError(
                    f"open_torch() cannot keep the rule of {step.name}, applied at "
                    f"{step.where}: its {part} cannot be opened.\n"
                    f"{type(error).__name__}: {said}"
                ) from error
            self._known[key] = program, step
        found: TorchProgram = self._known[key][0]
        return found


class BackwardRule:
    """The backward of a function of torch.autograd, traced and opened.

    kept  what its forward keeps besides inputs and outputs

    Of complex tensors torch means the conjugates of the gradients that a graph has.
    """

    def __init__(
        self, building: TorchBuilding, step: AppliedFunction, places: Sequence[int]
    ) -> None:
        self._building = building
        self._step = step
        self._places = places
        self.kept: Sequence[Tensor] = ()
        self.__name__ = step.name

    def __repr__(self) -> str:
        return f"<the rule of {self.__name__} in torch>"

    def pulled(
        self, xs: Sequence[TensorType], kept: Sequence[TensorType], given: Sequence[bool]
    ) -> TorchProgram:
        """The program of the gradients, where such outputs, the first that are kept, have one."""
        count, end = len(xs), len(xs) + len(kept)

        def call(*tensors: Any) -> list[Any]:
            rest = iter(tensors[end:])
            dys = [next(rest) if flag else None for flag in given]
            return self._step.backward(tensors[:count], tensors[count:end], dys)

        types = [*xs, *kept, *[y for y, flag in zip(kept, given, strict=False) if flag]]
        known = self._building
        return known._traced(self._step, "backward", call, types, tuple(given))

    def __call__(self, site: Any, *dys: Tensor) -> list[Any]:
        xs, ys = [site.inputs[i] for i in self._places], list(site.outputs)
        pairs = zip(ys, dys, strict=True)
        given = [y.type.differentiable and not gg.is_zero(dy) for y, dy in pairs]
        kept = [*ys, *self.kept]
        program = self.pulled([x.type for x in xs], [y.type for y in kept], given)
        seeds = [_conjugate(as_tensor(dy)) for dy, flag in zip(dys, given, strict=True) if flag]
        read = [*xs, *kept, *seeds]
        if self._step.once:
            read = [undefined_gradient(t) if t.type.differentiable else t for t in read]
        made = TorchBuilding(program, self._building._known).run(inputs_of(program, {}, read))
        found: dict[Tensor, Any] = {}
        for x, dx in zip(xs, made, strict=True):
            if isinstance(dx, Tensor) and x.type.differentiable:
                dx = _conjugate(_fitted(dx, x))
                found[x] = found[x] + dx if x in found else dx
        return [found.get(x, NO_GRAD) for x in site.inputs]


def _fitted(dx: Tensor, x: Tensor) -> Any:
    """A gradient of the shape and dtype of x, as torch makes it."""
    dx = dx if dx.shape == x.shape else gg.sum_to(dx, like=x)
    return dx if dx.dtype == x.dtype else gg.cast(dx, x.dtype)


def _conjugate(dy: Tensor) -> Any:
    return gg.conj(dy) if dy.dtype.kind == "c" else dy


def inputs_of(
    program: TorchProgram, named: Mapping[str, Tensor], tensors: Sequence[Any]
) -> list[Any]:
    """What a program takes: its own by name, its constants, and what it is called with."""
    rest = iter(tensors)
    made = []
    for spec in program.signature.input_specs:
        if spec.kind.name == "USER_INPUT":
            made.append(next(rest))
        elif spec.kind.name == "TOKEN":  # of checks, of which nothing is read
            made.append(None)
        elif spec.target in named:
            made.append(named[spec.target])
        else:
            made.append(constant(np.array(array_of(program.exported.constants[spec.target]))))
    return made


def _read(value: Any, env: dict[Any, Any]) -> Any:
    """What stands for nodes, in lists and tuples."""
    if isinstance(value, list | tuple):
        return [_read(part, env) for part in value]
    if isinstance(value, dict):
        return {key: _read(part, env) for key, part in value.items()}
    return env[value] if hasattr(value, "all_input_nodes") else value


def _attribute(module: Any, path: str) -> Any:
    """A program of a module, or a constant."""
    for part in path.split("."):
        module = getattr(module, part)
    return constant(np.array(array_of(module))) if isinstance(module, torch.Tensor) else module


def _by_schema(schema: Any, args: Sequence[Any], kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
    """Arguments as the schema has them, with its defaults."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for place, argument in enumerate(schema.arguments):
        value = args[place] if place < len(args) else kwargs.get(argument.name, _MISSING)
        value = argument.default_value if value is _MISSING else value
        if argument.kwarg_only:
            named[argument.name] = value
        else:
            positional.append(value)
    return positional, named


_MISSING = object()


def _working_dtype(node: Any, value: Any) -> Any:
    """The dtype of the (first) result; of what is compared that of both."""
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return None
    if dtype is torch.bool and len(node.args) > 1:
        both = [_value(x) for x in node.args[:2]]
        if all(isinstance(x, torch.Tensor | int | float | complex) for x in both):
            dtype = torch.result_type(*both)
    return np.dtype(dtype_of(torch.empty(0, dtype=dtype)))


def _value(x: Any) -> Any:
    value = x.meta.get("val") if hasattr(x, "meta") else x
    return 2 if isinstance(value, torch.SymInt) else value


def _checked(name: str, y: Any, value: Any) -> Any:
    """A result in torch's dtype; GraphError where its shape is another one."""
    if y is None or not isinstance(value, torch.Tensor) or not isinstance(y, Tensor):
        return y
    dtype = dtype_of(value)
    if y.dtype != dtype:
        y = gg.cast(y, dtype)
    shape = tuple(n if isinstance(n, int) else None for n in value.shape)
    if len(shape) != y.ndim or not compatible(tuple(y.shape), shape):
        raise GraphError(
            f"the form of the operator {name} gave {y.type!r}, and torch says {list(value.shape)}"
        )
    return y


def _computed(name: str, target: Any, args: Sequence[Any]) -> Any:
    """A step of lengths and numbers, or a part of a result."""
    if name == "sym_size.int":
        return args[0].shape[args[1]]
    if name == "sym_numel":
        total: Any = 1
        for n in args[0].shape:
            total = total * n
        return total
    if name == "getitem":
        return args[0][args[1]]
    if not any(isinstance(x, Length | Tensor) for x in args):
        return target(*args)
    if name in ("sym_max", "sym_min"):
        return (Length.max if name == "sym_max" else Length.min)(*args)
    if name in ("truediv", "sym_float", "pow"):
        args = [
            apply(LengthValue(x, np.dtype("float64"))) if isinstance(x, Length) else x for x in args
        ]
        return args[0] if name == "sym_float" else target(*args)
    if name in ("ceil", "floor", "trunc") or target in (math.ceil, math.floor, math.trunc):
        raise NotImplementedError("an open length")
    return target(*args)


def _stand_in(shape: Sequence[Any], dtype: Any) -> Tensor:
    known = tuple([None if isinstance(n, torch.SymInt) else n for n in shape])
    return placeholder(known, dtype) if None in known else gg.zeros(known, dtype)


def _own(y: Tensor) -> Tensor:
    """A tensor of the body: what is only handed on becomes one."""
    return y if y.node.graph is current().graph else identity(y)
