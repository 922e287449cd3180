"""Ops of a run as a graph of graphgrad, for the shapes and the small numbers at hand."""

from __future__ import annotations

from typing import Any

import numpy as np

import graphgrad as gg
from graphgrad.extend import Program, load_backend

from .definition import Definition, definition_of
from .errors import InvalidArgumentError, OpError, UnimplementedError
from .graph import Operation, Tensor
from .schedule import needed_ops, ordered
from .trial import as_results

__all__ = ["DEAD", "Break", "Trace", "variable_of"]

SMALL = 16  # elements of an integer input that shapes may be worked out from


class Dead:
    """The value of what belongs to a branch that is not taken."""

    def __repr__(self) -> str:
        return "<not taken>"


DEAD: Any = Dead()


class Break(Exception):
    """The value of a tensor has to be known before the trace can go on."""

    def __init__(self, tensor: Tensor) -> None:
        super().__init__(tensor.name)
        self.tensor = tensor


def variable_of(t: Tensor) -> Operation | None:
    """The variable that a reference leads to, or None where the tensor is a value."""
    while t.dtype._is_ref_dtype:
        if t.op.type == "VariableV2":
            return t.op
        if not t.op._inputs:
            return None
        t = t.op._inputs[0]
    return None


def is_alias(op: Operation) -> bool:
    """Whether an op reads a variable as it is when the value is used, not when the op runs."""
    return op.type == "Identity" and variable_of(op._inputs[0]) is not None


class Trace:
    """What a stretch of ops computes.

    known     {tensor: array, native tensor or DEAD}
    arrays    {tensor: array}: what is there before the stretch
    read      value of a variable that was there before: read(variable op) -> array
    inputs    {source: native placeholder}; sources are tensors, variables, "random" and "seeded"
    versions  {variable op: its value after the ops so far}
    guards    {tensor: array}: values that decided what was traced
    """

    def __init__(self, known: dict[Tensor, Any], dead: set[Operation], arrays: Any, read: Any):
        self.native = gg.Graph()
        self.known = dict(known)
        self.dead = set(dead)
        self.arrays = arrays
        self.read_before = read
        self.inputs: dict[Any, gg.Tensor] = {}
        self.sources: dict[gg.Tensor, Any] = {}
        self.versions: dict[Operation, Any] = {}
        self.guards: dict[Tensor, Any] = {}

    # what lowerings ask for

    def value(self, t: Tensor) -> Any:
        """The value of a tensor that a shape or a choice needs, as an array."""
        found = self.constant(t)
        if found is not None:
            return found
        if t in self.arrays:
            self.guards[t] = self.arrays[t]
            return self.arrays[t]
        native = self.of(t)
        found = self._computed(native)
        if found is None:
            raise Break(t)
        return found

    def decided(self, t: Tensor) -> bool:
        """Which way a choice goes."""
        found = self.constant(t)
        if found is None and t in self.arrays:
            found = self.guards[t] = self.arrays[t]
        if found is None:
            raise Break(t)
        return bool(found)

    def constant(self, t: Tensor) -> Any:
        """The value of a tensor where it is the same in all runs with these shapes, or None."""
        found = self.known.get(t)
        if isinstance(found, np.ndarray):
            return found
        if found is None:
            if t in self.arrays or t.op.type != "Const":
                return None
            return t.op.attrs["value"]
        made = self._computed(found, guarded=False)
        if made is not None:
            self.known[t] = made
        return made

    def key(self, op: Operation) -> gg.Tensor:
        """A key for the random numbers of an op: the same in a run, another in the next."""
        seed, seed2 = op.attrs.get("seed", 0), op.attrs.get("seed2", 0)
        seeded = bool(seed or seed2)
        source = self._input("seeded" if seeded else "random", np.zeros((), "int64"))
        number = hash((seed, seed2)) if seeded else op.attrs.get("_draw", op._id)
        return gg.random.fold_in(source, np.int64(number & 0x7FFFFFFF))

    def of(self, t: Tensor) -> gg.Tensor:
        """A tensor as graphgrad's."""
        found = self.known.get(t)
        if found is None:
            if t in self.arrays:
                found = self.known[t] = self._input(t, self.arrays[t])
            elif t.op.type == "Const":
                found = gg.constant(t.op.attrs["value"])
            else:
                variable = variable_of(t.op._inputs[0] if is_alias(t.op) else t)
                if variable is None:
                    raise KeyError(t.name)
                return self.variable(variable)
        if isinstance(found, np.ndarray):
            found = self.known[t] = gg.constant(found)
        if found is DEAD:
            raise InvalidArgumentError(None, t.op, f"{t.name} is in a branch that is not taken")
        return found

    def variable(self, op: Operation) -> gg.Tensor:
        """The value of a variable now."""
        ref = op.outputs[0]
        if ref in self.arrays:
            return self._input(ref, self.arrays[ref])
        found = self.versions.get(op)
        if found is None:
            return self._input(op, self.read_before(op))
        if isinstance(found, np.ndarray):
            found = gg.constant(found)
        return found

    def has_value(self, op: Operation) -> bool:
        """Whether a variable has a value now."""
        if op in self.versions or op.outputs[0] in self.arrays:
            return True
        try:
            self.read_before(op)
        except OpError:
            return False
        return True

    def assign(self, t: Tensor, value: gg.Tensor) -> gg.Tensor:
        """From here on, the variable that a reference leads to has this value."""
        variable = variable_of(t)
        if variable is None:
            raise UnimplementedError(None, t.op, f"{t.name} is no variable")
        wanted = variable.outputs[0].dtype.base_dtype.numpy
        if value.dtype != wanted:
            value = gg.cast(value, wanted)
        self.versions[variable] = value
        return value

    def inside(self, inner: list[Tensor], args: Any, results: list[Tensor]) -> list[Any]:
        """What a body of ops makes of other inputs than it was built with."""
        part = Trace({}, set(), {}, self.read_before)
        part.native, part.inputs, part.sources = self.native, self.inputs, self.sources
        part.versions, part.guards = self.versions, self.guards
        part.known = dict(zip(inner, args, strict=True))
        for op in ordered(needed_ops(results, [], inner), inner):
            if op.outputs and all(t in part.known for t in op.outputs):
                continue
            if op.type not in SPECIAL and definition_of(op.type).lower is None:
                raise UnimplementedError(op.node_def, op, f"{op.type} within a Defun")
            part.step(op)
        return [part.of(t) for t in results]

    # the walk

    def step(self, op: Operation) -> None:
        """Take in one op."""
        outputs = op._outputs
        if outputs and all(t in self.arrays for t in outputs):
            return
        if op.type != "Merge" and self.is_dead(op):
            self.dead.add(op)
            for t in outputs:
                self.known[t] = DEAD
            return
        if op.type == "Identity" and is_alias(op):
            return
        special = SPECIAL.get(op.type)
        if special is not None:
            special(self, op)
            return
        definition = definition_of(op.type)
        with self.native.as_default():
            made = self._lowered(definition, op)
        for t, result in zip(outputs, made, strict=True):
            if t not in self.arrays:
                self.known[t] = result

    def is_dead(self, op: Operation) -> bool:
        """Whether it reads, or waits for, what is not computed."""
        known = self.known
        if any(known.get(t) is DEAD for t in op._inputs):
            return True
        return bool(self.dead) and any(c in self.dead for c in op.control_inputs)

    def _lowered(self, definition: Definition, op: Operation) -> list[Any]:
        try:
            args = [self._argument(t) for t in op._inputs]
            lower: Any = definition.lower
            made = as_results(lower(self, op, *args))
            return [_typed(r, t) for r, t in zip(made, op._outputs, strict=True)]
        except (Break, OpError):
            raise
        except NotImplementedError:
            raise
        except (gg.GraphGradError, ValueError, TypeError, IndexError) as error:
            types = ", ".join(f"{t.name} {self.shown(t)}" for t in op._inputs)
            raise InvalidArgumentError(
                op.node_def, op, f"{str(error).splitlines()[0]} (of {types})"
            ) from error

    def _argument(self, t: Tensor) -> Any:
        return None if t.dtype.name == "string" else self.of(t)

    def shown(self, t: Tensor) -> str:
        """A tensor's shape, for messages."""
        found = self.known.get(t)
        return "" if found is None or found is DEAD else str(tuple(found.shape))

    def _input(self, source: Any, array: Any) -> gg.Tensor:
        found = self.inputs.get(source)
        if found is None:
            with self.native.as_default():
                found = gg.placeholder(array.shape, array.dtype)
            self.inputs[source] = found
            self.sources[found] = source
        return found

    def _computed(self, native: gg.Tensor, guarded: bool = True) -> Any:
        """The value of a native tensor that depends on constants and small integers, or None."""
        given: list[gg.Tensor] = []
        for node in Program([], [native]).nodes:
            if not node.op.pure:
                return None
            if node.type == "Placeholder":
                source = self.sources.get(node.outputs[0])
                if not guarded or not isinstance(source, Tensor):
                    return None
                array = self.arrays[source]
                if array.dtype.kind not in "iub" or array.size > SMALL:
                    return None
                given.append(node.outputs[0])
        for t in given:
            self.guards[self.sources[t]] = self.arrays[self.sources[t]]
        run = load_backend("numpy").compile(Program(tuple(given), (native,)))
        return run(*[self.arrays[self.sources[t]] for t in given])[0]


def _typed(result: Any, t: Tensor) -> Any:
    """A result of the type that the op promised."""
    if isinstance(result, np.ndarray):
        return result.astype(t.dtype.base_dtype.numpy, copy=False)
    wanted = t.dtype.base_dtype.numpy
    return gg.cast(result, wanted) if result.dtype != wanted else result


# ops that are about the run itself


def _switch(trace: Trace, op: Operation) -> None:
    data, pred = op._inputs
    taken = int(trace.decided(pred))
    with trace.native.as_default():
        trace.known[op._outputs[taken]] = trace.of(data)
    trace.known[op._outputs[1 - taken]] = DEAD


def _ref_switch(trace: Trace, op: Operation) -> None:
    taken = int(trace.decided(op._inputs[1]))
    trace.known[op._outputs[1 - taken]] = DEAD


def _merge(trace: Trace, op: Operation) -> None:
    alive = [i for i, t in enumerate(op._inputs) if trace.known.get(t) is not DEAD]
    if not alive or any(c in trace.dead for c in op.control_inputs):
        trace.dead.add(op)
        trace.known.update(dict.fromkeys(op._outputs, DEAD))
        return
    with trace.native.as_default():
        trace.known[op._outputs[0]] = trace.of(op._inputs[alive[0]])
    trace.known[op._outputs[1]] = np.array(alive[0], "int32")


def _nothing(trace: Trace, op: Operation) -> None:
    """An op that only stands in the order, or whose value is looked up when it is read."""


def _placeholder(trace: Trace, op: Operation) -> None:
    t = op.outputs[0]
    shape = "" if t.shape.lengths is None else f" and shape {t.shape}"
    kind = {"float32": "float", "float64": "double"}.get(t.dtype.name, t.dtype.name)
    raise InvalidArgumentError(
        op.node_def,
        op,
        f"You must feed a value for placeholder tensor '{op.name}' with dtype {kind}{shape}",
    )


def _assign(trace: Trace, op: Operation) -> None:
    with trace.native.as_default():
        value = trace.of(op._inputs[1])
        shape = op._inputs[0].shape
        if op.attrs.get("validate_shape", True) and not shape.is_compatible_with(value.shape):
            raise InvalidArgumentError(
                op.node_def,
                op,
                "Assign requires shapes of both tensors to match. lhs shape= "
                f"{shape} rhs shape= {tuple(value.shape)}",
            )
        trace.known[op._outputs[0]] = trace.assign(op._inputs[0], value)


def _is_initialized(trace: Trace, op: Operation) -> None:
    variable = variable_of(op._inputs[0])
    found = variable is not None and trace.has_value(variable)
    trace.known[op._outputs[0]] = np.array(found)


SPECIAL: dict[str, Any] = {
    "Switch": _switch,
    "RefSwitch": _ref_switch,
    "Merge": _merge,
    "NoOp": _nothing,
    "Const": _nothing,
    "VariableV2": _nothing,
    "Placeholder": _placeholder,
    "Assign": _assign,
    "IsVariableInitialized": _is_initialized,
}
