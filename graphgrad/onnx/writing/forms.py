"""The form of an op in ONNX: calls of operators, made once for an op and types of inputs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...base.length import Length
from ...ir.onnx import NoOnnxForm
from ...ir.op import Op
from ...ir.program import Program
from ...ir.types import Array, TensorType
from ...lower.equated import equated
from ...ops.base import Constant
from ...ops.random.keys import FoldIn, RandomKey
from .lengths import ToldLengths
from .operators import Operators, type_of
from .patterns import FoundOperator
from .tracing import kernel_program, program_of
from .values import FreshNames, OnnxBlock, OnnxCall, OnnxValue

__all__ = ["DOMAIN", "Forms", "Story", "what_is_called"]

FUNCTION = 4
"""Calls from which on a form is a local function, where it is not on its own."""

BESIDE = frozenset(["MaxPool"])
"""Operators that stay in sight, for others read another output of the same call."""

DOMAIN = "graphgrad"
"""The domain of local functions."""


class Forms:
    """The forms of ops, and the local functions made of the longer ones.

    functions  name -> body
    run        the number of the run, of which draws without a seed make their keys
    told       the lengths that the inputs of the model tell
    inline     whether all forms are written where they are used
    """

    def __init__(self, home: OnnxBlock, inline: bool = False) -> None:
        self.inline = inline
        self.told = ToldLengths(home)
        self.functions: dict[str, OnnxBlock] = {}
        self.run: OnnxValue | None = None
        self._made: dict[Any, OnnxBlock] = {}
        self._named: dict[Any, str] = {}
        self._open: list[Any] = []
        self._names = FreshNames()

    def place(
        self, block: OnnxBlock, op: Op, inputs: Sequence[OnnxValue], story: Story | None = None
    ) -> tuple[OnnxValue, ...]:
        """The outputs of an op of values in a block; NoOnnxForm."""
        story = story or Story(op.type)
        if block.root is self.told.home:
            inputs = self._checked(block, op, inputs)
        if isinstance(op, Constant):
            return (block.constant(op.value, story.name),)
        if isinstance(op, RandomKey):
            if self.run is None:
                raise NoOnnxForm("it draws without a seed, inside a function of its own")
            return self.place(block, FoldIn(), [block.constant(op.of_draw()), self.run], story)
        if op.bodies:
            made = op.to_onnx(Operators(block, self), *inputs)
            if made is None:
                raise NoOnnxForm(f"{op.type} has no form in ONNX")
            return made if isinstance(made, tuple) else (made,)
        if op.open_lengths:
            return self._inline(block, op, inputs, story)
        form = self.of(op, tuple(map(type_of, inputs)))
        block.root.doubles |= form.doubles
        beside = any(c.operator in BESIDE for c in form.calls)
        if self.inline or len(form.calls) < FUNCTION or beside:
            return placed(form, block, inputs, story)
        outputs = tuple(
            [OnnxValue(block.names.fresh(story.name), r.dtype, r.shape) for r in form.results]
        )
        made, given = tuple([v.name for v in outputs]), tuple([v.name for v in inputs])
        name = self._function(op, form)
        block.calls.append(OnnxCall(name, given, made, {}, DOMAIN, story.metadata))
        return outputs

    def _checked(
        self, block: OnnxBlock, op: Op, inputs: Sequence[OnnxValue]
    ) -> Sequence[OnnxValue]:
        """The inputs of an op, with checks of the lengths that it counts as equal.

        The one that both count as is to be the greater of the two: in a shape that says so, another
        number of elements is an error of the runtime.
        """
        to, new = Operators(block, self), list(inputs)
        for a, b, taken in equated(op, tuple(map(type_of, inputs))):
            other = b if taken == a else a
            for old, length in ((taken, Length.max(a, b)), (other, Length.min(a, b))):
                at = next((i for i, x in enumerate(new) if old in (x.shape or ())), None)
                if at is not None:
                    new[at] = _with_length(to, new[at], old, length)
                    break
        return new

    def _inline(
        self, block: OnnxBlock, op: Op, inputs: Sequence[OnnxValue], story: Story
    ) -> tuple[OnnxValue, ...]:
        """The outputs of an op whose lengths are read in this model; NoOnnxForm."""
        first, types = len(block.calls), tuple(map(type_of, inputs))
        try:
            made = op.to_onnx(Operators(block, self), *inputs)
            if made is None:
                made = self.program(block, kernel_program(op, types), inputs)
        except NoOnnxForm as error:
            names = ", ".join(sorted(op.open_lengths))
            raise NoOnnxForm(f"{op!r} needs the length {names}: {error}") from error
        block.calls[first:] = [
            replace(call, metadata={**call.metadata, **story.metadata})
            for call in block.calls[first:]
        ]
        results = made if isinstance(made, tuple) else (made,)
        promised = zip(results, op.infer(*types), strict=True)
        return tuple([OnnxValue(v.name, t.dtype, t.shape) for v, t in promised])

    def of(self, op: Op, types: tuple[TensorType, ...]) -> OnnxBlock:
        """The form of an op for inputs of these types; NoOnnxForm."""
        key = (op, types)
        block = self._made.get(key)
        if block is None:
            if key in self._open:
                raise NoOnnxForm(f"{op.type} has no form in ONNX")
            self._open.append(key)
            try:
                block = self._made[key] = self._form(op, types)
            finally:
                self._open.pop()
        return block

    def _form(self, op: Op, types: tuple[TensorType, ...]) -> OnnxBlock:
        block = OnnxBlock()
        xs = [block.give(f"x{i}", t.dtype, t.shape) for i, t in enumerate(types)]
        made = op.to_onnx(Operators(block, self), *xs)
        if made is None:
            made = self.program(block, kernel_program(op, types), xs)
        results = made if isinstance(made, tuple) else (made,)
        for value, promise in zip(results, op.infer(*types), strict=True):
            assert value.dtype == promise.dtype, f"{op!r} has {value}, not {promise!r}, in ONNX"
            block.results.append(OnnxValue(value.name, promise.dtype, promise.shape))
        return block

    def found(
        self, block: OnnxBlock, found: FoundOperator, inputs: Sequence[OnnxValue], story: Story
    ) -> tuple[OnnxValue, ...]:
        """An operator that was found in a program: what is read of it."""
        form, pattern = OnnxBlock(), found.pattern
        xs: list[Any] = [form.give(f"x{i}", v.dtype, v.shape) for i, v in enumerate(inputs)]
        for i in range(len(xs) - pattern.numbers, len(xs)):
            xs[i] = block.known(inputs[i])
        read = [t is not None for t in found.made]
        made = pattern.write(Operators(form, self), read, *xs)
        form.results = [value for value, asked in zip(made, read, strict=False) if asked]
        return placed(form, block, inputs, story)

    def traced(
        self, block: OnnxBlock, function: Callable[..., Any], inputs: Sequence[OnnxValue]
    ) -> tuple[OnnxValue, ...]:
        """What function(xp, *tensors) builds, of values in a block."""
        name = self._open[-1][0].type if self._open else "a function"
        program = program_of(name, function, [type_of(v) for v in inputs])
        return self.program(block, program, inputs)

    def program(
        self, block: OnnxBlock, program: Program, inputs: Sequence[OnnxValue]
    ) -> tuple[OnnxValue, ...]:
        """The outputs of a program of values, in a block."""
        values = dict(zip(program.inputs, inputs, strict=True))
        for node in program.nodes:
            made = self.place(block, node.op, [values[t] for t in node.inputs])
            values.update(zip(node.outputs, made, strict=True))
        return tuple([values[t] for t in program.outputs])

    def _function(self, op: Op, form: OnnxBlock) -> str:
        """The name of the local function of a form; equal ones are one."""
        key = _content(form)
        name = self._named.get(key)
        if name is None:
            name = self._named[key] = self._names.fresh(snake(op.type))
            self.functions[name] = form
        return name


def _with_length(to: Operators, x: OnnxValue, old: Length, length: Length) -> OnnxValue:
    """x in the shape that has this length in place of another, which it is to be equal to."""
    shape = x.shape or ()
    parts = [
        length if d == old else to.length(x, axis) if d is None else d
        for axis, d in enumerate(shape)
    ]
    return to.reshape(x, *parts, shape=shape)


@dataclass(frozen=True)
class Story:
    """What a node of ONNX is called, and what its metadata say."""

    name: str
    metadata: Mapping[str, str] = field(default_factory=dict)


def placed(
    form: OnnxBlock, block: OnnxBlock, inputs: Sequence[OnnxValue], story: Story
) -> tuple[OnnxValue, ...]:
    """A form, of these values, copied into a block."""
    new = {v.name: x.name for v, x in zip(form.given, inputs, strict=True)}
    known: dict[str, Array] = form.constants
    last = {v.name for v in form.results}

    def name_of(name: str) -> str:
        if name not in new and name in known:
            new[name] = block.constant(known[name]).name
        return new.get(name, name)

    def made(name: str) -> str:
        new[name] = block.names.fresh(story.name if name in last else name)
        return new[name]

    for call in form.calls:
        block.calls.append(_moved(call, block, name_of, made, story.metadata))
    return tuple([OnnxValue(name_of(v.name), v.dtype, v.shape) for v in form.results])


def _moved(
    call: OnnxCall,
    block: OnnxBlock,
    name_of: Callable[[str], str],
    made: Callable[[str], str],
    story: Mapping[str, str],
) -> OnnxCall:
    """A call with other names."""
    attributes = dict(call.attributes)
    for key, inner in attributes.items():
        if isinstance(inner, OnnxBlock):
            attributes[key] = _moved_block(inner, block, name_of, made)
    inputs = tuple([name_of(n) for n in call.inputs])
    outputs = tuple([made(n) if n else "" for n in call.outputs])
    metadata = {**call.metadata, **story}
    return replace(call, inputs=inputs, outputs=outputs, attributes=attributes, metadata=metadata)


def _moved_block(
    inner: OnnxBlock, outer: OnnxBlock, name_of: Callable[[str], str], made: Callable[[str], str]
) -> OnnxBlock:
    block = OnnxBlock(outer)
    block.given = [OnnxValue(made(v.name), v.dtype, v.shape) for v in inner.given]
    block.calls = [_moved(call, block, name_of, made, {}) for call in inner.calls]
    block.results = [OnnxValue(name_of(v.name), v.dtype, v.shape) for v in inner.results]
    return block


def snake(type_: str) -> str:
    """`max_pool` for MaxPool: no operator of ONNX is called so."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type_).lower()


def _content(block: OnnxBlock) -> Any:
    """What two blocks have in common that are the same function."""
    constants = [(n, a.dtype, a.shape, a.tobytes()) for n, a in block.constants.items()]
    inner = block.root is not block  # a subgraph, which says the shapes of its own

    def parts(values: Sequence[OnnxValue]) -> tuple[Any, ...]:
        return tuple([(v.name, v.dtype, v.shape if inner else None) for v in values])

    return (
        parts(block.given),
        tuple(map(_call_content, block.calls)),
        parts(block.results),
        tuple(constants),
    )


def _call_content(call: OnnxCall) -> Any:
    return what_is_called(call), call.outputs


def what_is_called(call: OnnxCall) -> Any:
    """What two calls have in common that compute the same."""
    attributes = tuple([(k, _attribute_content(v)) for k, v in call.attributes.items()])
    return call.operator, call.domain, call.inputs, attributes


def _attribute_content(value: Any) -> Any:
    if isinstance(value, OnnxBlock):
        return _content(value)
    return (value.dtype, value.tobytes()) if isinstance(value, np.ndarray) else repr(value)
