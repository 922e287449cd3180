"""Variables: state of a session, with initializers that are ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .control_flow import cond
from .copying import copied
from .create import apply, convert_to_tensor, name_scope
from .definition import define
from .graph import Graph, GraphKeys, Operation, Tensor, get_default_graph
from .ops.array import _slice_helper
from .ops.math import operators
from .schedule import needed_ops
from .scope import changed, default_stack
from .shapes import TensorShape, unknown_shape
from .trace import variable_of

__all__ = [
    "Variable", "all_variables", "assign", "assign_add", "assign_sub", "global_variables",
    "global_variables_initializer", "initialize_all_variables", "initialize_local_variables",
    "initialize_variables", "is_variable_initialized", "local_variables",
    "local_variables_initializer", "model_variables", "moving_average_variables",
    "report_uninitialized_variables", "scatter_add", "scatter_nd_add", "scatter_nd_update",
    "scatter_sub", "scatter_update", "trainable_variables", "variables_initializer",
]  # fmt: skip


def _ref_type(inputs: Any, attrs: Any) -> Any:
    return [inputs[0].dtype]


def _assigned_shape(inputs: Any, attrs: Any) -> TensorShape:
    value = inputs[1]._shape
    if not attrs.get("validate_shape", True):
        return value
    try:
        return inputs[0]._shape.merge_with(value)
    except ValueError:
        raise ValueError(
            f"Dimension must be equal: shapes {inputs[0]._shape} and {value} of a variable and "
            "its new value are incompatible"
        ) from None


define("VariableV2", types=lambda i, a: [a["dtype"]._ref], infer=lambda i, a: [a["shape"]])
define("Assign", "ref:R value", infer=_assigned_shape, types=_ref_type, stateful=True)
define("IsVariableInitialized", "ref:R", dtype="bool", infer=lambda i, a: TensorShape(()),
       stateful=False)  # fmt: skip


@define("AssignAdd", "ref:R value", infer=_assigned_shape, types=_ref_type, stateful=True)
def _assign_add(trace: Any, op: Any, ref: Any, value: Any) -> Any:
    return _updated(trace, op, ref + value)


@define("AssignSub", "ref:R value", infer=_assigned_shape, types=_ref_type, stateful=True)
def _assign_sub(trace: Any, op: Any, ref: Any, value: Any) -> Any:
    return _updated(trace, op, ref - value)


def _updated(trace: Any, op: Any, new: Any) -> Any:
    shape = op.inputs[0].shape
    if not shape.is_compatible_with(new.shape):
        raise ValueError(f"the new value has shape {tuple(new.shape)}, the variable {shape}")
    return trace.assign(op.inputs[0], new)


class Variable:
    """A tensor that a session keeps, and that ops change.

    initial_value  a number, array or tensor, or a function that gives one
    trainable      whether optimizers change it
    name           of its op; the value read by default is "name/read:0"
    """

    __array_priority__ = 100

    def __init__(
        self,
        initial_value: Any = None,
        trainable: Any = None,
        collections: Any = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        expected_shape: Any = None,
        import_scope: Any = None,
        constraint: Any = None,
        use_resource: Any = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: Any = None,
    ) -> None:
        if initial_value is None:
            raise ValueError("initial_value must be specified.")
        self._trainable = True if trainable is None else bool(trainable)
        self.constraint = constraint
        self._save_slice_info: Any = None
        graph = get_default_graph()
        keys = [GraphKeys.GLOBAL_VARIABLES] if collections is None else list(collections)
        if self._trainable and GraphKeys.TRAINABLE_VARIABLES not in keys:
            keys.append(GraphKeys.TRAINABLE_VARIABLES)
        with changed(graph, controls=(), flow=None):
            made = callable(initial_value)
            values = [] if made else [initial_value]
            with name_scope(name, "Variable", values) as scope:
                self._make(graph, initial_value, dtype, validate_shape, scope, shape)
        for key in dict.fromkeys(keys):
            graph.add_to_collection(key, self)

    def _make(
        self, graph: Graph, value: Any, dtype: Any, validate: bool, scope: str, shape: Any
    ) -> None:
        label = scope.rstrip("/")
        if callable(value):
            with graph.name_scope("Initializer"):
                value = convert_to_tensor(value(), dtype, "initial_value")
        else:
            value = convert_to_tensor(value, dtype, "initial_value")
        self._initial_value = value = _guarded(value)
        kind = value.dtype.base_dtype
        known = value.shape if validate else unknown_shape()
        if validate and not value.shape.is_fully_defined() and value.shape.lengths is None:
            raise ValueError(f"initial_value must have a shape specified: {value}")
        op = graph._make(
            "VariableV2", (), [kind._ref], [known], {"dtype": kind, "shape": known}, label + "/"
        )
        op.attrs["_object"] = self
        self._variable = op.outputs[0]
        self._initializer_op = graph._make(
            "Assign",
            (self._variable, value),
            [kind._ref],
            [known],
            {"validate_shape": validate, "use_locking": True},
            label + "/Assign/",
        )
        self._snapshot = graph._make(
            "Identity", (self._variable,), [kind], [known], {}, label + "/read/"
        ).outputs[0]

    # what it is

    @property
    def name(self) -> str:
        """The op's name, and ":0"."""
        return self._variable.name

    @property
    def op(self) -> Operation:
        """The op of type VariableV2."""
        return self._variable.op

    @property
    def _shared_name(self) -> str:
        return self.name[:-2]

    @property
    def dtype(self) -> Any:
        """The type of its elements, as a reference."""
        return self._variable.dtype

    @property
    def shape(self) -> TensorShape:
        """Its shape."""
        return self._variable.shape

    def get_shape(self) -> TensorShape:
        """Its shape."""
        return self._variable.shape

    def set_shape(self, shape: Any) -> None:
        """Say more about its shape."""
        self._variable.set_shape(shape)
        self._snapshot.set_shape(shape)

    @property
    def graph(self) -> Graph:
        """The graph it is in."""
        return self._variable.graph

    @property
    def device(self) -> str:
        """What `device` said for it."""
        return self._variable.device

    @property
    def trainable(self) -> bool:
        """Whether optimizers change it."""
        return self._trainable

    @property
    def initializer(self) -> Operation:
        """The op that gives it its initial value."""
        return self._initializer_op

    @property
    def initial_value(self) -> Tensor:
        """The tensor that the initializer assigns."""
        return self._initial_value

    def initialized_value(self) -> Tensor:
        """Its value, or the initial one where it has none yet."""
        flag = apply("IsVariableInitialized", self._variable)
        return cond(flag, self.read_value, lambda: self._initial_value)

    def value(self) -> Tensor:
        """The value as an op of type Identity, made with the variable."""
        return self._snapshot

    def read_value(self) -> Tensor:
        """The value where this stands in the order of the run."""
        return apply("Identity", self._variable, name="read")

    def _ref(self) -> Tensor:
        return self._variable

    def _as_graph_element(self) -> Tensor:
        return self._variable

    def _tensor_of(self, as_ref: bool = False) -> Tensor:
        return self._variable if as_ref else self._snapshot

    def eval(self, session: Any = None, feed_dict: Any = None) -> Any:
        """Its value in a session."""
        return self._variable.eval(session=session, feed_dict=feed_dict)

    def numpy(self) -> Any:
        """There is none while a graph is built."""
        raise NotImplementedError("a variable has a value only in a session: session.run(v)")

    # changing it

    def assign(
        self, value: Any, use_locking: bool = False, name: Any = None, read_value: bool = True
    ) -> Tensor:
        """An op that gives it another value; its result is that value."""
        return assign(self, value, use_locking=use_locking, name=name)

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: Any = None, read_value: bool = True
    ) -> Tensor:
        """An op that adds to it."""
        return assign_add(self, delta, use_locking, name)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: Any = None, read_value: bool = True
    ) -> Tensor:
        """An op that takes from it."""
        return assign_sub(self, delta, use_locking, name)

    def count_up_to(self, limit: Any) -> Tensor:
        """Not there."""
        raise NotImplementedError("count_up_to: write v.assign_add(1) and stop in Python")

    def load(self, value: Any, session: Any = None) -> None:
        """Give it another value in a session, now."""
        stack = default_stack("session")
        if session is None and not stack:
            raise ValueError("Either session argument should be provided or default session should "
                             "be established")  # fmt: skip
        chosen = stack[-1] if session is None else session
        array = np.array(value, self.dtype.base_dtype.numpy)
        if not self.shape.is_compatible_with(array.shape):
            raise ValueError(f"{self.name} has shape {self.shape}, the value {array.shape}")
        chosen._commit({self.op: array})

    def __getitem__(self, key: Any) -> Tensor:
        return _slice_helper(self._snapshot, key)

    def __iter__(self) -> Any:
        raise TypeError("'Variable' object is not iterable.")

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def ref(self) -> Any:
        """Itself: it is hashable here."""
        return self

    experimental_ref = ref

    def __repr__(self) -> str:
        return f"<tf.Variable {self.name!r} shape={self.shape} dtype={self.dtype.name}>"

    class SaveSliceInfo:
        """How a variable is part of another: never here."""


def _guarded(value: Tensor) -> Tensor:
    """An initial value that reads other variables, made of what they have, or start with."""
    reads = [
        op.outputs[0]
        for op in needed_ops([value], [], [])
        if op.type == "Identity" and op._inputs[0].op.type == "VariableV2"
    ]
    if not reads or value.op.type == "Merge":
        return value
    known = {t: t.op._inputs[0].op.attrs["_object"].initialized_value() for t in reads}
    copied(needed_ops([value], [], reads), known)
    return known[value]


RefVariable = Variable


class PartitionedVariable:
    """A variable in parts: there is none here."""


def _on_value(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Variable, *args: Any) -> Any:
        return getattr(self._snapshot, name)(*args)

    call.__name__ = name
    return call


for _name, _method in operators().items():
    setattr(Variable, _name, _on_value(_name, _method))


def _reference(ref: Any) -> Tensor:
    t: Tensor = ref._tensor_of(True) if hasattr(ref, "_tensor_of") else ref
    if not isinstance(t, Tensor) or variable_of(t) is None:
        raise TypeError(f"assign takes a variable, got {ref!r}")
    return t


def assign(
    ref: Any, value: Any, validate_shape: Any = None, use_locking: Any = None, name: Any = None
) -> Tensor:
    """An op that gives a variable another value; its result is that value."""
    validate = True if validate_shape is None else validate_shape
    return _changed("Assign", ref, value, name, validate_shape=validate)


def _changed(type: str, ref: Any, value: Any, name: Any, **attrs: Any) -> Tensor:
    t = _reference(ref)
    value = convert_to_tensor(value, None if isinstance(value, Tensor) else t.dtype.base_dtype)
    if value.dtype.base_dtype is not t.dtype.base_dtype:
        raise TypeError(
            f"Input 'value' of '{type}' Op has type {value.dtype.base_dtype.name} that does not "
            f"match type {t.dtype.base_dtype.name} of argument 'ref'."
        )
    return apply(type, t, value, name=name, **attrs)


def assign_add(ref: Any, value: Any, use_locking: Any = None, name: Any = None) -> Tensor:
    """An op that adds to a variable."""
    return _changed("AssignAdd", ref, value, name)


def assign_sub(ref: Any, value: Any, use_locking: Any = None, name: Any = None) -> Tensor:
    """An op that takes from a variable."""
    return _changed("AssignSub", ref, value, name)


def _scattered(type: str, ref: Any, indices: Any, updates: Any, name: Any, rows: bool) -> Tensor:
    """An op that changes rows of a variable by number, or elements by places."""
    value = convert_to_tensor(ref)
    indices = convert_to_tensor(indices, preferred_dtype="int32")
    places = apply("ExpandDims", indices, -1) if rows else indices
    new = apply(f"Tensor{type}", value, places, convert_to_tensor(updates, value.dtype))
    return assign(ref, new, name=name)


def scatter_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: Any = None
) -> Tensor:
    """An op that gives rows of a variable other values."""
    return _scattered("ScatterUpdate", ref, indices, updates, name or "ScatterUpdate", True)


def scatter_add(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: Any = None
) -> Tensor:
    """An op that adds to rows of a variable."""
    return _scattered("ScatterAdd", ref, indices, updates, name or "ScatterAdd", True)


def scatter_sub(ref: Any, indices: Any, updates: Any, **kwargs: Any) -> Tensor:
    """An op that takes from rows of a variable."""
    return scatter_add(ref, indices, apply("Neg", convert_to_tensor(updates)), **kwargs)


def scatter_nd_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: Any = None
) -> Tensor:
    """An op that gives elements of a variable other values, by places."""
    return _scattered("ScatterUpdate", ref, indices, updates, name or "ScatterNdUpdate", False)


def scatter_nd_add(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: Any = None
) -> Tensor:
    """An op that adds to elements of a variable, by places."""
    return _scattered("ScatterAdd", ref, indices, updates, name or "ScatterNdAdd", False)


# collections of variables


def _collection(key: str) -> Callable[..., list[Any]]:
    def function(scope: Any = None) -> list[Any]:
        return get_default_graph().get_collection(key, scope)

    function.__name__ = key
    function.__doc__ = f"The collection {key!r} of the default graph."
    return function


global_variables = _collection(GraphKeys.GLOBAL_VARIABLES)
trainable_variables = _collection(GraphKeys.TRAINABLE_VARIABLES)
local_variables = _collection(GraphKeys.LOCAL_VARIABLES)
model_variables = _collection(GraphKeys.MODEL_VARIABLES)
moving_average_variables = _collection(GraphKeys.MOVING_AVERAGE_VARIABLES)
all_variables = global_variables


def variables_initializer(var_list: Any, name: str = "init") -> Operation:
    """An op that gives variables their initial values, each after those that it is made of."""
    graph = get_default_graph()
    with changed(graph, controls=()), graph.control_dependencies([v.initializer for v in var_list]):
        return graph._make("NoOp", (), [], [], {}, name)


def global_variables_initializer() -> Operation:
    """An op that gives all global variables their initial values."""
    return variables_initializer(global_variables())


def local_variables_initializer() -> Operation:
    """An op that gives all local variables their initial values."""
    return variables_initializer(local_variables())


initialize_all_variables = global_variables_initializer
initialize_variables = variables_initializer
initialize_local_variables = local_variables_initializer


def is_variable_initialized(variable: Any) -> Tensor:
    """Whether a variable has a value."""
    return apply("IsVariableInitialized", variable._ref())


def _uninitialized(run: Any, op: Any, *given: Any) -> Any:
    return [np.array([n for n, there in zip(op.attrs["names"], given) if not there], object)]


define("ReportUninitialized", "flags*:bool", host=_uninitialized, dtype="string",
       infer=lambda i, a: TensorShape([None]))  # fmt: skip


def report_uninitialized_variables(
    var_list: Any = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """The names of the variables that have no value."""
    chosen = global_variables() + local_variables() if var_list is None else list(var_list)
    with name_scope(name):
        flags = [is_variable_initialized(v) for v in chosen]
        names = [v.op.name.encode() for v in chosen]
        return apply("ReportUninitialized", *flags, names=names)
