"""The nodes of a file as nodes of a graph, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ...base.errors import FileError, GraphGradError, did_you_mean
from ...ir.build import build
from ...ir.graph import Graph, current, name_scope
from ...ir.node import Tensor
from ...ir.types import Array, as_dtype, size_of
from ...ops.base import Constant
from ...ops.sources import identity
from ...regions.scopes import override_gradient
from ..package import onnx
from .attributes import values_of
from .call import OperatorCall, Value
from .forms import Form, form_of
from .grids import StoredGrids
from .lengths import as_numbers, has_lengths
from .marks import mark_of
from .moving import moved
from .names import clean, path_of, rename
from .narrow import NARROW, widened
from .notes import FileNotes
from .own import OwnForms
from .protobuf import opsets_of
from .survey import body_of, domain_of, functions_of, key_of
from .tensors import NAMES, array_of_tensor

__all__ = ["Builder"]

MOST_FOLDED = 1 << 16
"""How many elements may be made while loading, of what is known."""


class Names:
    """What the names of values mean in a graph of the file, and in those around it."""

    def __init__(self, around: Names | None = None) -> None:
        self.values: dict[str, Value] = {}
        self.around = around

    def find(self, name: str) -> Value:
        """The value; FileError where nothing before makes it."""
        here: Names | None = self
        while here is not None:
            if name in here.values:
                return here.values[name]
            here = here.around
        hint = did_you_mean(name, self.values)
        raise FileError(f"it reads {name!r:.80}, which no node before it writes. {hint}".rstrip())

    def put(self, name: str, value: Value) -> None:
        """FileError where there is such a value."""
        if name in self.values:
            raise FileError(f"{name!r:.80} is written twice")
        self.values[name] = value


class Builder:
    """Builds nodes into the graph that is open.

    model    the ModelProto
    folder   where its external data may lie
    regions  {name of a local function: rule}
    grids    what reads QuantizeLinear and DequantizeLinear as regions, if they are to be that
    unroll   whether loops of known length are built run by run
    own      how the caller has operators read
    notes    what the file says of the operators that nodes are built of
    """

    def __init__(
        self,
        model: Any,
        folder: Path | None,
        regions: Mapping[str, Any],
        unroll: bool,
        own: OwnForms,
    ) -> None:
        self.folder = folder
        self.regions = regions
        self.unroll = unroll
        self.own = own
        self.grids: StoredGrids | None = None
        self.functions = functions_of(model)
        self.opsets = opsets_of(model)
        self.names = Names()
        self.notes = FileNotes()
        self._attributes: Mapping[str, Any] = {}
        self._prefix = ""
        self._constants: dict[tuple[int, int], tuple[Tensor, Array]] = {}

    # --- values ---

    def as_tensor(self, value: Value, name: str = "") -> Tensor:
        """A value as a tensor; one node for each array and graph."""
        if isinstance(value, Tensor):
            return value
        if value is None:
            raise FileError("it returns a value that is omitted")
        if has_lengths(value):
            return as_numbers(value)
        graph = current().graph
        key = id(graph), id(value)
        cached = self._constants.get(key)
        if cached is None:
            t = build(Constant(_fixed(value)), ()).outputs[0]
            if clean(name):
                rename(t, self._prefix + clean(name))
            cached = self._constants[key] = t, value  # the array is held, so that its id stays
        return cached[0]

    def initializers(self, graph: Any) -> dict[str, Array]:
        """{name: array} of a graph of the file."""
        arrays = {}
        for stored in graph.initializer:
            if stored.name in arrays:
                raise FileError(f"there are two initializers {stored.name!r:.80}")
            arrays[stored.name] = array_of_tensor(stored, self.folder)
        for sparse in graph.sparse_initializer:
            raise FileError(f"the initializer {sparse.values.name!r:.80} is sparse")
        return arrays

    # --- graphs ---

    def nodes(self, nodes: Any) -> None:
        """Build nodes; what they make gets their names."""
        for i, node in enumerate(nodes):
            with _told(i, node):
                self._node(node)

    def body(self, graph: Any, given: Sequence[Value]) -> list[Value]:
        """The outputs of a graph inside a node, for values of its inputs."""
        if len(given) != len(graph.input):
            raise FileError(f"its body takes {len(graph.input)} inputs, but gets {len(given)}")
        with self._inside(Names(self.names)):
            for name, array in self.initializers(graph).items():
                self.names.put(name, array)
            for said, value in zip(graph.input, given, strict=True):
                self.names.put(said.name, value)
            self.nodes(graph.node)
            return [self.names.find(said.name) for said in graph.output]

    def known_in(
        self, graph: Any, nodes: Any, given: Mapping[str, Value], wanted: Sequence[str]
    ) -> list[Array] | None:
        """What nodes of a graph make of known values, computed; None where they need others."""
        with self._inside(Names(self.names)), Graph():
            for name, value in {**self.initializers(graph), **given}.items():
                self.names.put(name, value)
            try:
                self.nodes(nodes)
                values = [self.names.find(name) for name in wanted]
            except FileError:
                return None
        known = all(isinstance(value, np.ndarray) and value.dtype != object for value in values)
        return values if known else None

    @contextmanager
    def _inside(self, names: Names, **other: Any) -> Iterator[None]:
        """A block in which names, and other fields, mean others."""
        fields = {"names": names, **other}
        before = {name: getattr(self, name) for name in fields}
        self.__dict__.update(fields)
        try:
            yield
        finally:
            self.__dict__.update(before)

    # --- nodes ---

    def _node(self, node: Any) -> None:
        values = [self.names.find(name) if name else None for name in node.input]
        attributes = values_of(node.attribute, self._attributes, self.folder)
        path = self._prefix + path_of(node)
        form = self.own.of(domain_of(node), node.op_type)
        function = self.functions.get(key_of(node)) if form is None else None
        if form is None and function is None:
            form = self._form(node, values)
        if function is not None:
            made = self._called(function, node, path, values, attributes)
        elif form is None:
            version = self.opsets[domain_of(node)]
            body, defaults = body_of(node, version, list(map(_type_proto, values)))
            made = self._called(body, node, path, values, {**defaults, **attributes})
        else:
            made = self._formed(form, node, path, values, attributes)
        if len(made) < len([name for name in node.output if name]):
            raise FileError(f"it has {len(node.output)} outputs, but only {len(made)} are computed")
        for name, value in zip(node.output, made, strict=False):
            if name:
                self.names.put(name, value)

    def _form(self, node: Any, values: list[Value]) -> Form | None:
        """How an operator is read; None where it is not."""
        domain = domain_of(node)
        grid = None if self.grids is None or domain else self.grids.form(node, values)
        return grid or form_of(domain, node.op_type)

    def _formed(
        self, form: Form, node: Any, path: str, values: list[Value], attributes: dict[str, Any]
    ) -> list[Value]:
        """What the form of an operator makes of values."""
        opset = self.opsets[domain_of(node)]
        call = OperatorCall(node, opset, attributes, values, self._made(node), self)
        if form.folded and _all_known(values):
            outputs = _folded(form, call)
            if outputs is not None:
                return outputs
            call = OperatorCall(node, opset, attributes, values, self._made(node), self)
        start = len(current().graph.nodes)
        with name_scope(path):
            outputs = _as_list(form.read(call))
        _check_read(call)
        made = [self._named(value, path, start, i) for i, value in enumerate(outputs)]
        self.notes.built(made, node, opset, attributes)
        return made

    def _made(self, node: Any) -> Any:
        version = self.opsets[domain_of(node)]

        def made(array: Array, i: int) -> Tensor:
            t = self.as_tensor(array, node.input[i] if i >= 0 else "")
            if i >= 0:
                self.notes.weight(t.node, node, i, version)
            return t

        return made

    def _named(self, value: Value, path: str, start: int, i: int) -> Value:
        """A tensor that a node of this name makes."""
        if not isinstance(value, Tensor):
            return value
        made = value.node
        if made.graph is not current().graph or made.index < start or made._name is not None:
            if i and made.index >= start:
                return value
            value = identity(value)
        rename(value, path)
        return value

    # --- functions ---

    def _called(
        self,
        function: Any,
        node: Any,
        path: str,
        values: list[Value],
        attributes: dict[str, Any],
    ) -> list[Value]:
        """The outputs of a function of the file, or of ONNX, opened."""
        defaults = values_of(function.attribute_proto, {}, self.folder)
        if current().graph is self.notes.graph:
            self.notes.opened(path, node, self.opsets.get(domain_of(node), 1), attributes)
        names = Names()
        for i, name in enumerate(function.input):
            names.put(name, values[i] if i < len(values) else None)
        inside = {
            "_attributes": {**defaults, **attributes},
            "_prefix": f"{path}/",
            "opsets": {**self.opsets, **opsets_of(function)},
        }
        rule, mark = self.regions.get(function.name), mark_of(self, function)
        with ExitStack() as stack, self._inside(names, **inside):
            if rule is not None or mark is not None:
                inputs = [
                    self.as_tensor(v, n) for n, v in zip(function.input, values, strict=False)
                ]
                for name, t in zip(function.input, inputs, strict=True):
                    names.values[name] = t
                scope = None if rule is not None or mark is None else mark.region(inputs)
                region = stack.enter_context(scope or override_gradient(rule, inputs=inputs))
            self.nodes(function.node)
            if mark is not None:
                mark.read = [names.find(name) for name in mark.residuals]
            wanted = zip(function.output, node.output, strict=False)
            outputs = [names.find(name) if read else None for name, read in wanted]
            if rule is not None or mark is not None:
                outputs = [self.as_tensor(value) for value in outputs]
                region.declare(outputs=outputs)
        return outputs

    def opened(self, function: Any, values: list[Value], prefix: str) -> list[Value]:
        """The outputs of a function of the file that no node calls, for values of its inputs."""
        if len(function.input) != len(values):
            count = len(function.input)
            raise FileError(f"{function.name:.80} takes {count} inputs, but gets {len(values)}")
        names = Names()
        for name, value in zip(function.input, values, strict=True):
            names.put(name, value)
        opsets = {**self.opsets, **opsets_of(function)}
        with self._inside(names, _attributes={}, _prefix=prefix, opsets=opsets):
            self.nodes(function.node)
            return [names.find(name) for name in function.output]


@contextmanager
def _told(i: int, node: Any) -> Iterator[None]:
    """Whatever is wrong in this block is wrong with a node of the file."""
    name = node.name or next(iter(node.output), "")
    said = f"node {i}, {name!r:.80} ({node.op_type:.80})"
    try:
        yield
    except FileError as error:
        error.args = (f"{said}: {error}",)
        raise
    except Exception as error:
        what = str(error) if isinstance(error, GraphGradError) else repr(error)
        raise FileError(f"{said}: {what:.1000}") from error


def _all_known(values: Sequence[Value]) -> bool:
    """Whether all that is read are small arrays of numbers."""
    total = 0
    for value in values:
        if value is None:
            continue
        if not isinstance(value, np.ndarray):
            return False
        total += value.size
    return bool(values) and total <= MOST_FOLDED


def _folded(form: Form, call: OperatorCall) -> list[Value] | None:
    """What a form makes of known arrays, computed; None where that is too much."""
    if any(has_lengths(value) for value in call.values):
        return moved(call)
    scratch = Graph()
    with scratch:
        call._made = lambda array, _: build(Constant(_fixed(array)), ()).outputs[0]
        outputs = _as_list(form.read(call))
    _check_read(call)
    made = [size_of(t.shape) for node in scratch.nodes for t in node.outputs]
    if any(size is None or size > MOST_FOLDED for size in made):
        return None
    arrays: dict[Tensor, Array] = {}
    with np.errstate(all="ignore"):
        for node in scratch.nodes:
            ran = node.op.kernel(np, *[arrays[t] for t in node.inputs])
            rows = ran if isinstance(ran, tuple) else (ran,)
            arrays.update(zip(node.outputs, map(np.asarray, rows), strict=True))
    return [arrays[v] if isinstance(v, Tensor) else v for v in outputs]


def _as_list(made: Any) -> list[Value]:
    return list(made) if isinstance(made, tuple | list) else [made]


def _check_read(call: OperatorCall) -> None:
    """FileError for attributes that the form did not read: they may change the meaning."""
    if call.unread:
        names = ", ".join(sorted(call.unread))
        raise FileError(f"its attributes {names:.200} are not supported")


def _fixed(array: Any) -> Array:
    """An array that nobody writes to."""
    frozen = widened(np.asarray(array))
    if frozen.flags.writeable:
        frozen = frozen.copy()
        frozen.flags.writeable = False
    return frozen


def _type_proto(value: Value) -> Any:
    """The type of a value, as ONNX says it."""
    if value is None:
        return onnx.TypeProto()
    number = {name: n for n, name in NAMES.items()}
    number |= {kind.name: n for n, kind in NARROW.items()}
    dtype = as_dtype("int64") if has_lengths(value) else value.dtype
    return onnx.helper.make_tensor_type_proto(number[dtype.name], value.shape)
