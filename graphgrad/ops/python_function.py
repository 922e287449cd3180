"""Python functions as ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..base.errors import ExecutionError, GradientError, GraphError, ShapeError
from ..base.flags import truth
from ..base.kinds import can_cast
from ..base.position import of_function, show
from ..ir.onnx import NoOnnxForm
from ..ir.types import as_shape, check_unmasked, compatible
from .base import (
    Any,
    Array,
    DTypeError,
    Gradients,
    Node,
    Op,
    Sequence,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    as_tensor,
    build,
    np,
    tensor_type,
)
from .documented import documented

__all__ = ["py_function", "register_function"]

Fn = TypeVar("Fn", bound=Callable[..., Any])

_functions: dict[str, Callable[..., Any]] = {}


class PyFunction(Op, interned=False):
    """What a Python function returns for the arrays it is given, checked against promised types.

    Gradient: that of vjp, which is graph code; without one, a GradientError where a gradient is
        needed.
    """

    fn: Callable[..., Any]
    out_types: tuple[TensorType, ...]
    rule: Callable[..., Any] | None = None
    pure = False

    def infer(self, *types: TensorType) -> Types:
        return self.out_types

    def kernel(self, xp: Any, *arrays: Any) -> Any:
        try:
            ys = self.fn(*[_read_only(a) for a in arrays])
        except Exception as error:
            error.add_note(f"in the py_function {self.label}")
            raise
        values = ys if isinstance(ys, tuple | list) and len(self.out_types) != 1 else [ys]
        if len(values) != len(self.out_types):
            raise ExecutionError(
                f"the py_function {self.label} returned {len(values)} values, but out_types "
                f"promises {len(self.out_types)}"
            )
        made = [self.checked(v, t) for v, t in zip(values, self.out_types, strict=True)]
        return made[0] if len(made) == 1 else tuple(made)

    def to_onnx(self, to: Any, *xs: Any) -> Any:
        raise NoOnnxForm(f"{self.type} has no form in ONNX: it calls a Python function")

    def checked(self, value: Any, promised: TensorType) -> Array:
        """The value as an array of the promised type; Python numbers are weak."""
        weak = type(value) in (bool, int, float)
        check_unmasked(value, f"the py_function {self.label} must return arrays: ")
        array = np.asarray(value)
        if weak and can_cast(array.dtype, promised.dtype, "same_kind"):
            array = array.astype(promised.dtype)
        if array.dtype != promised.dtype or not compatible(promised.shape, array.shape):
            raise ExecutionError(
                f"the py_function {self.label} returned {array.dtype}{list(array.shape)}, but "
                f"{promised!r} is promised by out_types"
            )
        return np.array(array)

    @property
    def label(self) -> str:
        """The function's name and where it was defined."""
        return f"{getattr(self.fn, '__name__', repr(self.fn))!r} ({show(of_function(self.fn))})"

    def vjp(self, node: Node, *dys: Tensor) -> Gradients:
        if self.rule is None:
            raise GradientError(
                f"the gradient of the py_function {self.label}, used at {node.where}, is needed "
                "but was not given; pass vjp=, or put gg.stop_gradient on its inputs"
            )
        dxs = self.rule(node, *dys)
        return dxs if isinstance(dxs, tuple | list) else (dxs,)

    def __repr__(self) -> str:
        return f"PyFunction({self.label})"


class MissingFunction:
    """Stands for a function whose name means nothing in this process, in a graph from a file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise self.error("")

    def error(self, where: str) -> GraphError:
        """What is said where it is needed."""
        return GraphError(
            f"the graph calls the Python function {self.name!r}{where}, which is not registered "
            "here: a file carries its name, not its code.\n"
            f"Register it with @gg.register_function({self.name!r}), or give it to gg.load(path, "
            f"functions={{{self.name!r}: f}})."
        )


def register_function(name: str, *, replace: bool = False) -> Callable[[Fn], Fn]:
    """Decorator: give a Python function the name by which files of graphs know it.

    A py_function, or its vjp, can be saved if it has one. Where the file is loaded, the name means
    what is registered under it there; to load never runs or imports code.

    Parameters:
        name: best with the name of your package before it: "mylib/saw".
        replace: whether a name that is taken is given to this function.

    Returns: a decorator that returns the function unchanged.

    Raises: GraphError for a name that another function has, unless it is the same one defined
    again (same module and qualified name) or replace=True; TypeError for input that is not a name
    or no function.

    >>> @gg.register_function("doc/saw")
    ... def saw(x):
    ...     return x - np.floor(x)
    >>> y = gg.py_function(saw, [[0.25, 1.5]], [((2,), "float64")])
    >>> gg.evaluate(y)
    array([0.25, 0.5 ])
    """
    truth("replace", replace)
    if not isinstance(name, str) or not name:
        raise TypeError(f"register_function takes the name to register under, got {name!r}")

    def register(f: Fn) -> Fn:
        if not callable(f):
            raise TypeError(f"register_function names a function, got {f!r}")
        old = _functions.get(name)
        if old is not None and not replace and _identity(old) != _identity(f):
            raise GraphError(
                f"a function is already registered as {name!r}: {old!r}.\nChoose another name, or "
                "say replace=True."
            )
        _functions[name] = f
        return f

    return register


def _identity(f: Any) -> tuple[Any, ...]:
    """What makes two functions the same one, defined again."""
    name = getattr(f, "__qualname__", None)
    return (id(f),) if name is None or "<lambda>" in name else (f.__module__, name)


def name_of_function(f: Any) -> str | None:
    """The name that a function has here; None: it has none."""
    if isinstance(f, MissingFunction):
        return f.name
    return next((name for name, known in _functions.items() if known is f), None)


def function_named(name: str) -> Callable[..., Any]:
    """The function of a name, or what says that there is none."""
    return _functions.get(name) or MissingFunction(name)


def check_function(node: Node) -> None:
    """GraphError for a node that calls a function which is not here."""
    fn = getattr(node.op, "fn", None)
    if isinstance(fn, MissingFunction):
        raise fn.error(f" (at {node.where})")


def _read_only(array: Any) -> Array:
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


@documented(PyFunction)
def py_function(
    f: Callable[..., Any],
    inputs: Sequence[TensorLike],
    out_types: Sequence[Any],
    vjp: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """Call a Python function on NumPy arrays when the graph runs.

    The function may have effects: it is never merged with another call or run twice in a run.

    Parameters:
        f: takes one read-only array for each input; returns one array, or a tuple of them.
        inputs: tensors, or what becomes constants; any shapes and dtypes.
        out_types: a (shape, dtype) for each output; None and names are lengths not yet known.
        vjp: vjp(node, *dys) builds the gradients of the inputs from tensors, one for each;
            node.inputs and node.outputs are there to be used.
        name: the node's name.

    Returns: a tensor for one output, else a tuple.

    Raises: ShapeError for no out_types; DTypeError for one that is not a (shape, dtype). A run
    raises ExecutionError where f returns something else than out_types promise.

    >>> y = gg.py_function(np.sin, [[0.0, 1.0]], [((2,), "float64")])
    >>> gg.evaluate(y).round(3)
    array([0.   , 0.841])
    """
    tensors = tuple([as_tensor(x) for x in inputs])
    types = tuple([promised_type(t) for t in out_types])
    if not types:
        raise ShapeError("py_function needs at least one output in out_types")
    outputs = build(PyFunction(f, types, vjp), tensors, name).outputs
    return outputs[0] if len(outputs) == 1 else outputs


def promised_type(given: Any) -> TensorType:
    """The type that an entry of out_types means."""
    if isinstance(given, TensorType):
        return given
    try:
        shape, dtype = given
    except (TypeError, ValueError):
        raise DTypeError(f"out_types takes (shape, dtype) pairs, got {given!r}") from None
    return tensor_type(as_shape(shape), dtype)
