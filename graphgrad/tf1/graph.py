"""The graph of a TF1 program: ops one for one, their tensors, names, collections and maps."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from .dtypes import DType, as_dtype
from .errors import OperatorNotAllowedInGraphError
from .position import caller, show
from .scope import ControlFrame, changed, default_stack, pushed, scope_of
from .shapes import TensorShape, as_shape

__all__ = ["Graph", "GraphKeys", "Operation", "Tensor", "get_default_graph", "reset_default_graph"]

VALID_NAME = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$")
VALID_SCOPE = re.compile(r"^[A-Za-z0-9_.\\/>-]*$")


class Tensor:
    """One output of an op. Compared and hashed by identity; operators build ops.

    op           the Operation that makes it
    value_index  which of its outputs
    dtype        the type of its elements
    """

    __slots__ = (
        "__dict__", "__weakref__", "_consumers", "_dtype", "_shape", "op", "value_index",
    )  # fmt: skip
    __array_priority__ = 100
    OVERLOADABLE_OPERATORS: set[str] = set()

    def __init__(self, op: Operation, value_index: int, dtype: DType, shape: TensorShape) -> None:
        self.op = op
        self.value_index = value_index
        self._dtype = dtype
        self._shape = shape
        self._consumers: list[Operation] = []

    @property
    def dtype(self) -> DType:
        """The type of its elements."""
        return self._dtype

    @property
    def name(self) -> str:
        """The op's name, a colon, and which output."""
        return f"{self.op.name}:{self.value_index}"

    @property
    def graph(self) -> Graph:
        """The graph it is in."""
        return self.op.graph

    @property
    def device(self) -> str:
        """What `device` said for its op."""
        return self.op.device

    @property
    def shape(self) -> TensorShape:
        """What is known of its shape."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """What is known of its shape."""
        return self._shape

    def set_shape(self, shape: Any) -> None:
        """Say more about the shape. Raises ValueError where that contradicts what is known."""
        self._shape = self._shape.merge_with(as_shape(shape))

    def _shape_tuple(self) -> Any:
        return self._shape.lengths

    @property
    def ndim(self) -> Any:
        """The rank. Raises ValueError where it is not known."""
        return len(self._shape)

    def consumers(self) -> list[Operation]:
        """The ops that read it."""
        return list(self._consumers)

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """The value, by the session given or the default one."""
        return _session("evaluate tensor", session, self.graph).run(self, feed_dict)

    def experimental_ref(self) -> Any:
        """Itself: it is hashable here."""
        return self

    ref = experimental_ref

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise OperatorNotAllowedInGraphError(
            f"Using a symbolic `tf.Tensor` as a Python `bool` is not allowed: {self.name} has no "
            "value while the graph is built. Use tf.cond, or tf.Session.run for its value."
        )

    __nonzero__ = __bool__

    def __iter__(self) -> Iterator[Any]:
        raise OperatorNotAllowedInGraphError(
            f"Iterating over a symbolic `tf.Tensor` is not allowed: {self.name}. Use tf.unstack, "
            "or tf.map_fn."
        )

    def __len__(self) -> int:
        raise TypeError(
            f"len is not well defined for a symbolic Tensor ({self.name}). Please call "
            "`x.shape` rather than `len(x)` for shape information."
        )

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(
            f"Cannot convert a symbolic tf.Tensor ({self.name}) to a numpy array. It has a value "
            "only in tf.Session.run."
        )

    if TYPE_CHECKING:  # ops/math.py and ops/array.py put them in place
        __add__: Any
        __radd__: Any
        __sub__: Any
        __rsub__: Any
        __mul__: Any
        __rmul__: Any
        __truediv__: Any
        __rtruediv__: Any
        __neg__: Any
        __lt__: Any
        __gt__: Any
        __getitem__: Any

    def __repr__(self) -> str:
        return f"<tf.Tensor {self.name!r} shape={self._shape} dtype={self._dtype.name}>"

    def __str__(self) -> str:
        known = "" if self._shape.lengths is None else f", shape={self._shape}"
        return f'Tensor("{self.name}"{known}, dtype={self._dtype.name})'


class OpDefinition:
    """What `op.op_def` says of an op type."""

    def __init__(self, name: str) -> None:
        self.name = name


class NodeDef:
    """What `op.node_def` says of an op: name, type, device, names of inputs, attributes."""

    def __init__(self, op: Operation) -> None:
        self.name, self.op, self.device = op.name, op.type, op.device
        controls = [f"^{c.name}" for c in op.control_inputs]
        self.input = [t.name.removesuffix(":0") for t in op.inputs] + controls
        self.attr = dict(op.attrs)

    def __repr__(self) -> str:
        return f"name: {self.name!r}\nop: {self.op!r}\ninput: {self.input}\nattr: {self.attr}"


class Operation:
    """One op of a graph. Compared and hashed by identity.

    type            TensorFlow's name of what it does
    outputs         its tensors
    control_inputs  ops that run before it
    attrs           what it was made with
    """

    __slots__ = (
        "__dict__", "__weakref__", "_control_flow_context", "_device", "_id", "_inputs",
        "_original_op", "_outputs", "attrs", "control_inputs", "graph", "name", "position", "type",
    )  # fmt: skip

    def __init__(
        self,
        graph: Graph,
        type: str,
        name: str,
        inputs: tuple[Tensor, ...],
        attrs: dict[str, Any],
        controls: list[Operation],
        dtypes: Sequence[DType],
        shapes: Sequence[TensorShape],
    ) -> None:
        self.graph = graph
        self.type = type
        self.name = name
        self._inputs = inputs
        self.attrs = attrs
        self.control_inputs = controls
        self._device: Any = ""
        self._control_flow_context: Any = None
        self._original_op: Operation | None = None
        self.position: Any = None
        if len(dtypes) == 1:
            self._outputs = [Tensor(self, 0, dtypes[0], shapes[0])]
        else:
            pairs = enumerate(zip(dtypes, shapes, strict=True))
            self._outputs = [Tensor(self, i, d, s) for i, (d, s) in pairs]
        self._id = 0
        for t in inputs:
            t._consumers.append(self)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors it reads."""
        return self._inputs

    @property
    def outputs(self) -> list[Tensor]:
        """The tensors it makes, as a list of the caller's own."""
        return list(self._outputs)

    @property
    def device(self) -> str:
        """What `device` said for it."""
        return self._device if isinstance(self._device, str) else ""

    @property
    def values(self) -> Callable[[], tuple[Tensor, ...]]:
        """A function of its tensors, as TensorFlow has it."""
        return lambda: tuple(self._outputs)

    @property
    def node_def(self) -> NodeDef:
        """Its description."""
        return NodeDef(self)

    @property
    def op_def(self) -> OpDefinition:
        """What is said of its type."""
        return OpDefinition(self.type)

    @property
    def where(self) -> str:
        """The file and line of the user's that made it."""
        return show(self.position)

    @property
    def traceback(self) -> list[Any]:
        """Where it was made, as a list of one."""
        return [self.where]

    def get_attr(self, name: str) -> Any:
        """An attribute. Raises ValueError where there is none of that name."""
        if name in self.attrs:
            return self.attrs[name]
        if name in ("T", "dtype") and (self._outputs or self._inputs):
            return (self._outputs or list(self._inputs))[0].dtype.base_dtype
        raise ValueError(f"Operation {self.name!r} has no attr named {name!r}.")

    def _set_attr(self, name: str, value: Any) -> None:
        value = getattr(value, "s", value)
        self.attrs[name] = value.encode() if isinstance(value, str) else value
        self.graph._touch()

    def _set_device(self, device: Any) -> None:
        self._device = device

    def _add_control_input(self, op: Operation) -> None:
        if op not in self.control_inputs:
            self.control_inputs.append(op)
        self.graph._touch()

    def _add_control_inputs(self, ops: Any) -> None:
        for op in ops:
            self._add_control_input(op)

    def _remove_all_control_inputs(self) -> None:
        self.control_inputs.clear()
        self.graph._touch()

    def _update_input(self, index: int, tensor: Tensor) -> None:
        old = self._inputs[index]
        self._inputs = (*self._inputs[:index], tensor, *self._inputs[index + 1 :])
        if old not in self._inputs:
            old._consumers.remove(self)
        if self not in tensor._consumers:
            tensor._consumers.append(self)
        self.graph._touch()

    def _get_control_flow_context(self) -> Any:
        return self._control_flow_context

    def _set_control_flow_context(self, context: Any) -> None:
        self._control_flow_context = context

    @property
    def _control_outputs(self) -> list[Operation]:
        return [op for op in self.graph.get_operations() if self in op.control_inputs]

    def colocation_groups(self) -> list[bytes]:
        """With which ops it shares a device: with itself."""
        return [f"loc:@{self.name}".encode()]

    def run(self, feed_dict: Any = None, session: Any = None) -> None:
        """Run it, by the session given or the default one."""
        _session("execute operation", session, self.graph).run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Operation {self.name!r} type={self.type}>"

    def __str__(self) -> str:
        return repr(self.node_def)


class GraphKeys:
    """The names of the usual collections."""

    GLOBAL_VARIABLES = "variables"
    VARIABLES = "variables"
    LOCAL_VARIABLES = "local_variables"
    METRIC_VARIABLES = "metric_variables"
    MODEL_VARIABLES = "model_variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    MOVING_AVERAGE_VARIABLES = "moving_average_variables"
    REGULARIZATION_LOSSES = "regularization_losses"
    LOSSES = "losses"
    SUMMARIES = "summaries"
    UPDATE_OPS = "update_ops"
    TRAIN_OP = "train_op"
    GLOBAL_STEP = "global_step"
    INIT_OP = "init_op"
    LOCAL_INIT_OP = "local_init_op"
    SAVERS = "savers"
    ACTIVATIONS = "activations"
    WEIGHTS = "weights"
    BIASES = "biases"
    QUEUE_RUNNERS = "queue_runners"
    TABLE_INITIALIZERS = "table_initializer"
    CONCATENATED_VARIABLES = "concatenated_variables"
    SAVEABLE_OBJECTS = "saveable_objects"
    COND_CONTEXT = "cond_context"
    WHILE_CONTEXT = "while_context"


class Graph:
    """Ops in the order in which they were made, and what belongs to them."""

    def __init__(self) -> None:
        self._ops: list[Operation] = []
        self._by_name: dict[str, Operation] = {}
        self._names: dict[str, int] = {}
        self._collections: dict[Any, list[Any]] = {}
        self._finalized = False
        self._unfeedable: set[Tensor] = set()
        self._changes = 0
        self.seed: int | None = None
        self.experimental = self

    # making

    def _touch(self) -> None:
        """What ops read was changed: what sessions keep of it is old."""
        self._changes += 1

    def _make(
        self,
        type: str,
        inputs: tuple[Tensor, ...],
        dtypes: Sequence[DType],
        shapes: Sequence[TensorShape],
        attrs: dict[str, Any],
        name: str | None,
    ) -> Operation:
        """A new op, under what the scopes around say."""
        if self._finalized:
            self._check_not_finalized()
        scope = scope_of(self)
        full = self._name_of(type if name is None else name, scope.prefix)
        flow = scope.flow
        if flow is not None and inputs:
            with changed(self, prefix=full):
                inputs = tuple([flow.capture(t) for t in inputs])
        controls = _controls(scope.controls, inputs) if scope.controls else []
        if scope.maps and type in scope.maps:
            attrs = {**attrs, "_gradient_op_type": scope.maps[type].encode()}
            scope.maps[type].matched.add(type)
        op = Operation(self, type, full, inputs, attrs, controls, dtypes, shapes)
        op._device = scope.device
        op._original_op = scope.original
        op._id = len(self._ops)
        if flow is not None:
            flow.take(op)
        op.position = caller()
        self._ops.append(op)
        self._by_name[full] = op
        for frame in scope.controls:
            frame.seen.add(op)
        return op

    def _name_of(self, name: str, prefix: str) -> str:
        if name and name[-1] == "/":
            return name[:-1]
        if not VALID_NAME.match(name) and not (prefix and VALID_SCOPE.match(name)):
            raise ValueError(
                f"'{name}' is not a valid node name. Accepted names conform to Regex "
                f"/{VALID_NAME.pattern}/"
            )
        return self._unique_name(f"{prefix}/{name}" if prefix else name, True)

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """The name within the scope, with _1, _2, ... behind it where it is taken."""
        prefix = scope_of(self).prefix
        return self._unique_name(f"{prefix}/{name}" if prefix else name, mark_as_used)

    def _unique_name(self, name: str, mark_as_used: bool) -> str:
        key = name.lower()
        number = self._names.get(key, 0)
        if mark_as_used:
            self._names[key] = number + 1
        if number:
            base = key
            while key in self._names:
                key = f"{base}_{number}"
                number += 1
            if mark_as_used:
                self._names[key] = 1
            name = f"{name}_{number - 1}"
        return name

    def _check_not_finalized(self) -> None:
        if self._finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")

    def finalize(self) -> None:
        """Nothing can be added any more."""
        self._finalized = True

    def _unsafe_unfinalize(self) -> None:
        self._finalized = False

    @property
    def finalized(self) -> bool:
        """Whether nothing can be added any more."""
        return self._finalized

    @property
    def version(self) -> int:
        """How many ops there are."""
        return len(self._ops)

    # scopes

    def as_default(self) -> Any:
        """Ops in the block are made in this graph."""
        return pushed("graph", self)

    @contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Names in the block have this one before them; None goes back to no name at all."""
        if isinstance(name, str) and name and name[-1] == "/":
            prefix = name[:-1]
        elif not name:
            prefix = ""
        else:
            pattern = VALID_SCOPE if scope_of(self).prefix else VALID_NAME
            if not pattern.match(name):
                raise ValueError(f"'{name}' is not a valid scope name")
            prefix = self.unique_name(name)
        with changed(self, prefix=prefix):
            yield prefix + "/" if prefix else ""

    def get_name_scope(self) -> str:
        """The name that is before those of new ops."""
        return scope_of(self).prefix

    @property
    def _name_stack(self) -> str:
        return scope_of(self).prefix

    @contextmanager
    def gradient_override_map(
        self, op_type_map: dict[str, str], strict: bool = False
    ) -> Iterator[None]:
        """Ops of these types that are made in the block have gradients of these names.

        A type that no op has is a warning with near misses, and so is an old name of a type that
        ops of the block have, and a block in which nothing is made; an error where `strict`.
        """
        if not isinstance(op_type_map, dict) or not all(
            isinstance(k, str) and isinstance(v, str) for k, v in op_type_map.items()
        ):
            raise TypeError("op_type_map must be a dictionary mapping strings to strings")
        stamps = {op_type: MapEntry(name) for op_type, name in op_type_map.items()}
        first = len(self._ops)
        with changed(self, maps={**scope_of(self).maps, **stamps}):
            yield
        if stamps and len(self._ops) == first:
            _say(f"no op was made in the block of gradient_override_map({op_type_map}), so it maps "
                 "none: call what makes them within the block.", strict)  # fmt: skip
        for op_type, entry in stamps.items():
            if entry.matched:
                continue
            if not _known_type(op_type):
                _misspelt(op_type, strict)
            elif any(op.type == SUCCESSORS.get(op_type) for op in self._ops[first:]):
                _outdated(op_type, strict)

    @contextmanager
    def control_dependencies(self, control_inputs: Any) -> Iterator[Any]:
        """Ops made in the block run after these; None forgets those of blocks around."""
        scope = scope_of(self)
        if control_inputs is None:
            with changed(self, controls=(), flow=None):
                yield
            return
        ops: list[Operation] = []
        for c in control_inputs:
            op = self._operation_of(c)
            if op not in ops:
                ops.append(op)
        frame = ControlFrame(tuple(ops), set(ops))
        with changed(self, controls=(*scope.controls, frame)):
            yield frame

    def _operation_of(self, value: Any) -> Operation:
        element = getattr(value, "_as_graph_element", None)
        if element is not None:
            value = element()
        values = getattr(value, "values", None)
        if isinstance(values, Tensor):
            value = values
        if isinstance(value, str):
            value = self.as_graph_element(value)
        if isinstance(value, Tensor):
            return value.op
        if isinstance(value, Operation):
            return value
        raise TypeError(
            f"Control input must be Operation or Tensor, got {value!r} of {type(value).__name__}"
        )

    @contextmanager
    def device(self, device: Any) -> Iterator[None]:
        """Says where ops run: it is noted, and nothing else."""
        with changed(self, device=device or ""):
            yield

    @contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Says what ops run next to: nothing here."""
        yield

    @contextmanager
    def container(self, name: str) -> Iterator[str]:
        """Says where state lives: nothing here."""
        yield name

    @contextmanager
    def _original(self, op: Operation) -> Iterator[None]:
        """Ops in the block are made for the gradient of an op."""
        with changed(self, original=op):
            yield

    _original_op = _original

    def _get_control_flow_context(self) -> Any:
        return scope_of(self).flow

    # looking

    def get_operations(self) -> list[Operation]:
        """All ops, in the order in which they were made."""
        return list(self._ops)

    def as_graph_element(
        self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Any:
        """The tensor or op that a name, a variable, a tensor or an op stands for."""
        if not allow_tensor and not allow_operation:
            raise ValueError("allow_tensor and allow_operation can't both be False.")
        allowed = " or ".join(
            [w for w, a in (("Tensor", allow_tensor), ("Operation", allow_operation)) if a]
        )
        element = getattr(obj, "_as_graph_element", None)
        if element is not None:
            obj = element()
        if isinstance(obj, bytes):
            obj = obj.decode()
        if isinstance(obj, str):
            return self._by_text(obj, allow_tensor, allow_operation)
        if isinstance(obj, Tensor) and allow_tensor:
            if obj.graph is not self:
                raise ValueError(f"Tensor {obj} is not an element of this graph.")
            return obj
        if isinstance(obj, Operation) and allow_operation:
            if obj.graph is not self:
                raise ValueError(f"Operation {obj.name} is not an element of this graph.")
            return obj
        raise TypeError(f"Can not convert a {type(obj).__name__} into a {allowed}.")

    def _by_text(self, name: str, allow_tensor: bool, allow_operation: bool) -> Any:
        if ":" in name and allow_tensor:
            op_name, _, index = name.rpartition(":")
            if not index.isdigit():
                raise ValueError(
                    f"The name {name!r} looks a like a Tensor name, but is not a valid one. "
                    'Tensor names must be of the form "<op_name>:<output_index>".'
                )
            if op_name not in self._by_name:
                raise KeyError(
                    f"The name {name!r} refers to a Tensor which does not exist. The operation, "
                    f"{op_name!r}, does not exist in the graph.{self._near(op_name)}"
                )
            outputs = self._by_name[op_name].outputs
            if int(index) >= len(outputs):
                raise KeyError(
                    f"The name {name!r} refers to a Tensor which does not exist. The operation, "
                    f"{op_name!r}, exists but only has {len(outputs)} outputs."
                )
            return outputs[int(index)]
        if ":" in name:
            raise ValueError(f"The name {name!r} looks like a Tensor name, not an Operation.")
        if allow_operation:
            if name not in self._by_name:
                raise KeyError(
                    f"The name {name!r} refers to an Operation not in the graph.{self._near(name)}"
                )
            return self._by_name[name]
        if name in self._by_name:
            raise ValueError(
                f"The name {name!r} refers to an Operation, not a Tensor. Tensor names must be of "
                'the form "<op_name>:<output_index>".'
            )
        raise ValueError(
            f"The name {name!r} looks like an (invalid) Operation name, not a Tensor. Tensor names "
            'must be of the form "<op_name>:<output_index>".'
        )

    def _near(self, name: str) -> str:
        near = get_close_matches(name, self._by_name, n=1)
        return f" Did you mean {near[0]!r}?" if near else ""

    def get_operation_by_name(self, name: str) -> Operation:
        """The op of a name. Raises KeyError where there is none."""
        return self.as_graph_element(name, allow_tensor=False)

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor of a name such as "x:0". Raises KeyError where there is none."""
        if not isinstance(name, str):
            raise TypeError(f"Tensor names are strings (or similar), not {type(name).__name__}.")
        return self.as_graph_element(name, allow_operation=False)

    def is_feedable(self, tensor: Any) -> bool:
        """Whether a value may be fed for it."""
        return tensor not in self._unfeedable

    def is_fetchable(self, tensor: Any) -> bool:
        """Whether its value may be asked for."""
        return True

    def prevent_feeding(self, tensor: Any) -> None:
        """No value may be fed for it."""
        self._unfeedable.add(tensor)

    def prevent_fetching(self, op: Any) -> None:
        """Nothing: all may be asked for."""

    # collections

    def add_to_collection(self, name: Any, value: Any) -> None:
        """Put a value into a collection."""
        self._check_not_finalized()
        self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Any, value: Any) -> None:
        """Put a value into several collections."""
        for name in (names,) if isinstance(names, str) else set(names):
            self.add_to_collection(name, value)

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        """A copy of a collection; with a scope, of what has a name that it matches."""
        found = self._collections.get(name, [])
        if scope is None:
            return list(found)
        pattern = re.compile(scope)
        return [v for v in found if hasattr(v, "name") and pattern.match(v.name)]

    def get_collection_ref(self, name: Any) -> list[Any]:
        """The collection itself."""
        return self._collections.setdefault(name, [])

    def get_all_collection_keys(self) -> list[Any]:
        """The names of all collections that hold something."""
        return [k for k, v in self._collections.items() if isinstance(k, str) and v]

    @property
    def collections(self) -> list[Any]:
        """The names of all collections."""
        return list(self._collections)

    def clear_collection(self, name: Any) -> None:
        """Empty a collection."""
        self._check_not_finalized()
        self._collections.pop(name, None)

    def __enter__(self) -> Graph:
        raise TypeError("write `with graph.as_default():`")

    def __exit__(self, *_: object) -> None: ...


class MapEntry(str):
    """The name of a gradient in a map, and what of the map it was used for."""

    matched: set[str]

    def __new__(cls, name: str) -> MapEntry:
        made = super().__new__(cls, name)
        made.matched = set()
        return made


KNOWN_TYPES: set[str] = set()
"""The types of ops that there are; definitions put them here."""


def _known_type(op_type: str) -> bool:
    return op_type in KNOWN_TYPES or not KNOWN_TYPES


SUCCESSORS = {"Add": "AddV2", "Div": "RealDiv", "BatchMatMul": "BatchMatMulV2"}
SUCCESSORS |= {"Concat": "ConcatV2", "Gather": "GatherV2"}
"""Old types of ops, and what functions and operators make now."""


def _outdated(op_type: str, strict: bool) -> None:
    _say(
        f"gradient_override_map names {op_type!r}, which no op of the block is: they are of type "
        f"{SUCCESSORS[op_type]!r}. Name that one.",
        strict,
    )


def _misspelt(op_type: str, strict: bool) -> None:
    near = get_close_matches(op_type, KNOWN_TYPES, n=3)
    hint = f" Did you mean {', '.join(map(repr, near))}?" if near else ""
    _say(f"gradient_override_map names {op_type!r}, which is the type of no op.{hint}", strict)


def _say(text: str, strict: bool) -> None:
    if strict:
        raise ValueError(text)
    warnings.warn(text, UserWarning, stacklevel=6)


def _controls(frames: tuple[ControlFrame, ...], inputs: tuple[Tensor, ...]) -> list[Operation]:
    """What a new op waits for; a block whose ops its inputs wait for already says nothing new."""
    makers = {t.op for t in inputs}
    found: list[Operation] = []
    for frame in frames:
        if not makers.isdisjoint(frame.seen):
            continue
        found += [c for c in frame.ops if c not in makers and c not in found]
    return found


_global: list[Graph | None] = [None]


def get_default_graph() -> Graph:
    """The graph that ops are made in now."""
    stack = default_stack("graph")
    if stack:
        return stack[-1]
    made = _global[0]
    if made is None:
        made = _global[0] = Graph()
    return made


def reset_default_graph() -> None:
    """A new graph, without ops, is the default one. Raises AssertionError in a graph's block."""
    if default_stack("graph"):
        raise AssertionError(
            "Do not use tf.reset_default_graph() to clear nested graphs. If you need a cleared "
            "graph, exit the nesting and create a new graph."
        )
    _global[0] = Graph()


def _session(what: str, session: Any, graph: Graph) -> Any:
    stack = default_stack("session")
    if session is None and not stack:
        raise ValueError(
            f"Cannot {what} using `eval()` or `run()`: No default session is registered. Use "
            "`with sess.as_default()` or pass an explicit session."
        )
    chosen = stack[-1] if session is None else session
    if chosen.graph is not graph:
        raise ValueError(
            f"Cannot use the given session to {what}: the tensor's graph is different from the "
            "session's graph."
        )
    return chosen


def numpy_type(dtype: Any) -> np.dtype[Any]:
    """NumPy's type of a type of elements."""
    return as_dtype(dtype).numpy
