"""Variables that are shared by name: `get_variable`, `variable_scope`, templates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from .create import convert_to_tensor, name_scope
from .dtypes import as_dtype
from .graph import Graph, GraphKeys, Tensor, get_default_graph
from .initializers import glorot_uniform_initializer, zeros_initializer
from .scope import changed
from .shapes import as_shape
from .variables import Variable

__all__ = [
    "AUTO_REUSE", "VariableScope", "get_local_variable", "get_variable", "get_variable_scope",
    "make_template", "no_regularizer", "variable_creator_scope", "variable_op_scope",
    "variable_scope",
]  # fmt: skip


class _ReuseMode(Enum):
    AUTO_REUSE = 1


AUTO_REUSE = _ReuseMode.AUTO_REUSE


class VariableScope:
    """What holds for `get_variable` in a block.

    name   before the names of its variables
    reuse  whether variables are there already: False, True or AUTO_REUSE
    """

    def __init__(
        self,
        reuse: Any,
        name: str = "",
        initializer: Any = None,
        regularizer: Any = None,
        custom_getter: Any = None,
        name_scope: str = "",
        dtype: Any = "float32",
        use_resource: Any = None,
        constraint: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
    ) -> None:
        self._name = name
        self._reuse = reuse
        self._initializer = initializer
        self._regularizer = regularizer
        self._custom_getter = custom_getter
        self._name_scope = name_scope
        self._dtype = as_dtype(dtype)
        self._use_resource = use_resource
        self._constraint = constraint
        self._caching_device = caching_device
        self._partitioner = partitioner

    name = property(lambda self: self._name, doc="Before the names of its variables.")
    reuse = property(lambda self: self._reuse, doc="Whether variables are there already.")
    initializer = property(lambda self: self._initializer, doc="What new variables start with.")
    regularizer = property(lambda self: self._regularizer, doc="What is added for new variables.")
    custom_getter = property(lambda self: self._custom_getter, doc="What makes variables.")
    dtype = property(lambda self: self._dtype, doc="The type of new variables.")
    use_resource = property(lambda self: self._use_resource, doc="Noted, and nothing else.")
    constraint = property(lambda self: self._constraint, doc="Noted for new variables.")
    partitioner = property(lambda self: self._partitioner, doc="Noted, and nothing else.")

    @property
    def original_name_scope(self) -> str:
        """The name scope that was opened with it."""
        return self._name_scope

    def reuse_variables(self) -> None:
        """From here on variables are there already."""
        self._reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """What new variables start with."""
        self._initializer = initializer

    def set_regularizer(self, regularizer: Any) -> None:
        """What is added to REGULARIZATION_LOSSES for new variables."""
        self._regularizer = regularizer

    def set_dtype(self, dtype: Any) -> None:
        """The type of new variables."""
        self._dtype = as_dtype(dtype)

    def set_use_resource(self, use_resource: Any) -> None:
        """Noted, and nothing else."""
        self._use_resource = use_resource

    def set_custom_getter(self, custom_getter: Any) -> None:
        """What makes variables."""
        self._custom_getter = custom_getter

    def get_collection(self, name: str) -> list[Any]:
        """What is in a collection, of this scope."""
        prefix = self._name + "/" if self._name else ""
        return get_default_graph().get_collection(name, prefix)

    def trainable_variables(self) -> list[Any]:
        """The trainable variables of this scope."""
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def global_variables(self) -> list[Any]:
        """The variables of this scope."""
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def get_variable(self, store: Any = None, name: Any = None, *args: Any, **kwargs: Any) -> Any:
        """A variable of this scope."""
        return _get(self, name, *args, **kwargs)


class Store:
    """The variables of a graph by name, and how often names of scopes were used."""

    def __init__(self) -> None:
        self.variables: dict[str, Any] = {}
        self.counts: dict[str, int] = {}

    def opened(self, name: str) -> None:
        """A scope was opened."""
        self.counts[name] = self.counts.get(name, 0) + 1

    def closed(self, name: str) -> None:
        """Names within a scope start anew."""
        for k in self.counts:
            if not name or k.startswith(name + "/"):
                self.counts[k] = 0


_stores: WeakKeyDictionary[Graph, Store] = WeakKeyDictionary()
_scopes: ContextVar[dict[Graph, VariableScope]] = ContextVar("tf1_variable_scopes", default={})  # noqa: B039
_roots: WeakKeyDictionary[Graph, VariableScope] = WeakKeyDictionary()


def _store(graph: Graph) -> Store:
    return _stores.setdefault(graph, Store())


def get_variable_scope() -> VariableScope:
    """What holds for `get_variable` here."""
    graph = get_default_graph()
    found = _scopes.get().get(graph)
    return _roots.setdefault(graph, VariableScope(False)) if found is None else found


def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: Any = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: Any = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Any:
    """The variable of a name within the variable scopes around: a new one, or as `reuse` says.

    Raises ValueError for one that exists without `reuse`, and for one that does not with it.
    """
    return _get(
        get_variable_scope(), name, shape, dtype, initializer, regularizer, None, trainable,
        collections, caching_device, partitioner, validate_shape, use_resource, custom_getter,
        constraint,
    )  # fmt: skip


def _get(
    scope: VariableScope,
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    reuse: Any = None,
    trainable: Any = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: Any = None,
    custom_getter: Any = None,
    constraint: Any = None,
    **_: Any,
) -> Any:
    graph = get_default_graph()
    full = f"{scope.name}/{name}" if scope.name else name
    arguments = {
        "shape": shape,
        "dtype": scope.dtype if dtype is None else as_dtype(dtype),
        "initializer": scope.initializer if initializer is None else initializer,
        "regularizer": scope.regularizer if regularizer is None else regularizer,
        "trainable": trainable,
        "collections": collections,
        "validate_shape": validate_shape,
        "constraint": scope.constraint if constraint is None else constraint,
        "reuse": scope.reuse if reuse is None else reuse,
        "caching_device": caching_device,
        "partitioner": partitioner,
        "use_resource": use_resource,
        "synchronization": None,
        "aggregation": None,
    }
    getter = scope.custom_getter if custom_getter is None else custom_getter

    def true_getter(name: str, *args: Any, **kwargs: Any) -> Any:
        if args:
            raise TypeError("a custom getter passes its arguments by name")
        return _found_or_made(graph, name, **{**arguments, **kwargs})

    with graph.name_scope(None), changed(graph, controls=()):
        if getter is None:
            return _found_or_made(graph, full, **arguments)
        return getter(true_getter, full, **arguments)


def _found_or_made(
    graph: Graph,
    name: str,
    shape: Any,
    dtype: Any,
    initializer: Any,
    regularizer: Any,
    trainable: Any,
    collections: Any,
    validate_shape: bool,
    constraint: Any,
    reuse: Any,
    **_: Any,
) -> Any:
    store = _store(graph)
    found = store.variables.get(name)
    if found is not None:
        if reuse is False or reuse is None:
            raise ValueError(
                f"Variable {name} already exists, disallowed. Did you mean to set reuse=True or "
                f"reuse=tf.AUTO_REUSE in VarScope? It was made at {found.op.where}."
            )
        if shape is not None and not as_shape(shape).is_compatible_with(found.get_shape()):
            raise ValueError(
                f"Trying to share variable {name}, but specified shape {as_shape(shape)} and found "
                f"shape {found.get_shape()}."
            )
        if not dtype.is_compatible_with(found.dtype):
            raise ValueError(
                f"Trying to share variable {name}, but specified dtype {dtype.name} and found "
                f"dtype {found.dtype.base_dtype.name}."
            )
        return found
    if reuse is True:
        raise ValueError(
            f"Variable {name} does not exist, or was not created with tf.get_variable(). Did you "
            "mean to set reuse=tf.AUTO_REUSE in VarScope?"
        )
    variable = _made(
        name, shape, dtype, initializer, trainable, collections, validate_shape, constraint
    )
    store.variables[name] = variable
    if regularizer is not None:
        with graph.name_scope(f"{name}/Regularizer/"):
            loss = regularizer(variable)
        if loss is not None:
            graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
    return variable


def _made(
    name: str,
    shape: Any,
    dtype: Any,
    initializer: Any,
    trainable: Any,
    collections: Any,
    validate_shape: bool,
    constraint: Any,
) -> Variable:
    if initializer is None:
        if dtype.is_floating or dtype.is_complex:
            initializer = glorot_uniform_initializer()
        elif dtype.is_integer or dtype.is_bool:
            initializer = zeros_initializer()
        else:
            raise ValueError(f"An initializer for variable {name} of {dtype.name} is required")
    if isinstance(initializer, type):
        initializer = initializer(dtype=dtype)
    make = partial(
        Variable, trainable=trainable, collections=collections, validate_shape=validate_shape,
        name=name + "/", constraint=constraint,
    )  # fmt: skip
    if not callable(initializer):
        if shape is not None:
            raise ValueError("If initializer is a constant, do not specify shape.")
        value = initializer
        if not isinstance(value, Tensor) and not hasattr(value, "_tensor_of"):
            value = convert_to_tensor(value, dtype, name + "/initial_value")
        return make(value)
    if shape is None or not as_shape(shape).is_fully_defined():
        if shape is None and not _takes_shape(initializer):
            return make(initializer)
        raise ValueError(
            f"Shape of a new variable ({name}) must be fully defined, but instead was "
            f"{'<unknown>' if shape is None else as_shape(shape)}."
        )
    lengths = as_shape(shape).as_list()
    return make(lambda: _initial(initializer, lengths, dtype), dtype=dtype)


def _takes_shape(initializer: Any) -> bool:
    code = getattr(initializer, "__code__", None)
    return code is None or code.co_argcount > 0


def _initial(initializer: Callable[..., Any], shape: Any, dtype: Any) -> Any:
    for extra in ({"dtype": dtype, "partition_info": None}, {"dtype": dtype}, {}):
        if _accepts(initializer, extra):
            return initializer(shape, **extra)
    return initializer()


def _accepts(function: Any, extra: dict[str, Any]) -> bool:
    """Whether a function takes a shape and these."""
    code = getattr(function, "__code__", None)
    bound = 0
    if code is None:
        call = getattr(type(function), "__call__", None)  # noqa: B004
        code, bound = getattr(call, "__code__", None), 1
    elif getattr(function, "__self__", None) is not None:
        bound = 1
    if code is None:
        return not extra
    names = code.co_varnames[bound : code.co_argcount + code.co_kwonlyargcount]
    if code.co_flags & 8:
        return True
    return len(names) >= 1 + len(extra) and all(n in names for n in extra)


class variable_scope:
    """Names of variables in the block have this before them; a name scope of it is opened too.

    name_or_scope  a name, a VariableScope to enter again, or None for default_name made unique
    reuse          True: variables are there already; AUTO_REUSE: those that are; None: as around
    """

    def __init__(
        self,
        name_or_scope: Any,
        default_name: str | None = None,
        values: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        reuse: Any = None,
        dtype: Any = None,
        use_resource: Any = None,
        constraint: Any = None,
        auxiliary_name_scope: bool = True,
    ) -> None:
        if default_name is None and name_or_scope is None:
            raise TypeError("If default_name is None then name_or_scope is required")
        if reuse not in (None, False, True, AUTO_REUSE):
            raise ValueError("The reuse parameter must be True or False or None.")
        self._target, self._default, self._values = name_or_scope, default_name, values
        self._reuse = None if reuse is False else reuse
        self._fields = {
            "_initializer": initializer,
            "_regularizer": regularizer,
            "_custom_getter": custom_getter,
            "_dtype": None if dtype is None else as_dtype(dtype),
            "_constraint": constraint,
            "_use_resource": use_resource,
        }
        self._with_names = auxiliary_name_scope
        self._open: list[Any] = []

    def __enter__(self) -> VariableScope:
        opened = self._entered()
        scope: VariableScope = opened.__enter__()
        self._open.append(opened)
        return scope

    def __exit__(self, *exc: Any) -> Any:
        return self._open.pop().__exit__(*exc)

    @contextmanager
    def _entered(self) -> Iterator[VariableScope]:
        target = self._target
        if target is None:
            if self._reuse is True:
                raise ValueError("reuse=True cannot be used without a name_or_scope")
            with name_scope(self._default, values=self._values) as names:
                unique = _unique_name(self._default or "")
                with self._inside(unique, names) as scope:
                    yield scope
            return
        if isinstance(target, VariableScope):
            label = target.name.rsplit("/", 1)[-1]
        elif isinstance(target, str):
            label = target
        else:
            raise TypeError("VariableScope: name_or_scope must be a string or VariableScope.")
        if not label or not self._with_names:
            with self._inside(target, get_default_graph().get_name_scope()) as scope:
                yield scope
            return
        with name_scope(label, values=self._values) as names:
            original = target.original_name_scope if isinstance(target, VariableScope) else names
            with self._inside(target, original) as scope:
                yield scope

    @contextmanager
    def _inside(self, target: Any, names: str) -> Iterator[VariableScope]:
        graph = get_default_graph()
        around = get_variable_scope()
        if isinstance(target, VariableScope):
            made, parent = _copy(target), target
            made._reuse = target.reuse if not self._reuse else self._reuse
        else:
            made, parent = _copy(around), around
            made._name = f"{around.name}/{target}" if around.name else target
            made._reuse = self._reuse or around.reuse
        made._name_scope = names
        for field, value in self._fields.items():
            if value is not None:
                if field == "_custom_getter" and parent.custom_getter is not None:
                    value = _nested(value, parent.custom_getter)
                setattr(made, field, value)
        store = _store(graph)
        counts = dict(store.counts)
        if isinstance(target, VariableScope):
            store.closed(made.name)
        else:
            store.opened(made.name)
            counts[made.name] = store.counts[made.name]
        with _as_current(graph, made):
            yield made
        if isinstance(target, VariableScope):
            store.counts = counts
        else:
            store.closed(made.name)


def _nested(inner: Any, outer: Any) -> Any:
    def getter(true_getter: Any, *args: Any, **kwargs: Any) -> Any:
        def through(*a: Any, **k: Any) -> Any:
            return outer(true_getter, *a, **k)

        return inner(through, *args, **kwargs)

    return getter


def _copy(scope: VariableScope) -> VariableScope:
    made = VariableScope.__new__(VariableScope)
    made.__dict__.update(scope.__dict__)
    return made


@contextmanager
def _as_current(graph: Graph, scope: VariableScope) -> Iterator[None]:
    before = _scopes.get().get(graph)
    _scopes.set({**_scopes.get(), graph: scope})
    try:
        yield
    finally:
        scopes = dict(_scopes.get())
        if before is None:
            scopes.pop(graph, None)
        else:
            scopes[graph] = before
        _scopes.set(scopes)


def _unique_name(prefix: str) -> str:
    counts = _store(get_default_graph()).counts
    around = get_variable_scope().name
    full = f"{around}/{prefix}" if around else prefix
    if not counts.get(full):
        return prefix
    number = 1
    while counts.get(f"{full}_{number}"):
        number += 1
    return f"{prefix}_{number}"


@contextmanager
def variable_op_scope(
    values: Any, name_or_scope: Any, default_name: Any = None, **kwargs: Any
) -> Iterator[Any]:
    """`variable_scope`, with the arguments of TensorFlow 0.x."""
    with variable_scope(name_or_scope, default_name, values, **kwargs) as scope:
        yield scope


def get_local_variable(*args: Any, **kwargs: Any) -> Any:
    """`get_variable`, of a variable that is not trained and not saved."""
    kwargs = {**kwargs, "trainable": False}
    kwargs["collections"] = [*(kwargs.get("collections") or []), GraphKeys.LOCAL_VARIABLES]
    return get_variable(*args, **kwargs)


def no_regularizer(_: Any) -> None:
    """No regularizer, where the one of the scope is not wanted."""


@contextmanager
def variable_creator_scope(creator: Any) -> Iterator[None]:
    """Not there."""
    raise NotImplementedError("variable_creator_scope: use a custom_getter of tf.variable_scope")
    yield


def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: Any = None,
    custom_getter_: Any = None,
    **kwargs: Any,
) -> Callable[..., Any]:
    """A function that makes its variables at the first call and shares them afterwards."""
    return Template(name_, func_, create_scope_now_, unique_name_, custom_getter_, kwargs)


class Scoped:
    """What has variables in a scope of its own."""

    _scope: Any = None

    @property
    def trainable_variables(self) -> list[Any]:
        """Its variables that are trained."""
        return [] if self._scope is None else self._scope.trainable_variables()

    @property
    def variables(self) -> list[Any]:
        """Its variables."""
        return [] if self._scope is None else self._scope.global_variables()


class Template(Scoped):
    """A function whose calls share their variables."""

    def __init__(
        self, name: str, function: Any, now: bool, unique: Any, getter: Any, kwargs: Any
    ) -> None:
        self._name, self._function, self._kwargs = name, function, kwargs
        self._unique, self._getter = unique, getter
        self._called = False
        if now:
            self._open()

    def _open(self) -> None:
        with variable_scope(
            self._unique, default_name=self._name, custom_getter=self._getter
        ) as scope:
            self._scope = scope

    @property
    def variable_scope(self) -> Any:
        """The scope of its variables."""
        return self._scope

    @property
    def var_scope(self) -> Any:
        """The scope of its variables."""
        return self._scope

    global_variables = Scoped.variables

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._scope is None:
            self._open()
        reuse = True if self._called else None
        with variable_scope(self._scope, reuse=reuse):
            result = self._function(*args, **{**self._kwargs, **kwargs})
        self._called = True
        return result
