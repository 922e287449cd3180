"""NumPy functions applied to tensors build nodes, or say why they cannot."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np

from ...base.errors import DTypeError, SymbolicError
from ...base.kinds import can_cast
from ...base.lazy import LazyModule
from ...ir.node import Tensor
from ...ir.types import lengths
from ..base import as_dtype, as_tensor, cast, kind_of
from ..older_numpy import numpy_signature
from .ufunc_methods import accumulate_with, outer_of, reduce_with, reduceat_with

__all__: list[str] = []

_difflib = LazyModule("difflib")

API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


def _by_name(names: str, renamed: Mapping[str, str]) -> dict[Any, str]:
    """NumPy function -> name of ours; functions that this NumPy lacks are left out."""
    pairs = {**{n: n for n in names.split()}, **renamed}
    functions = {_find(np, theirs): ours for theirs, ours in pairs.items()}
    functions.pop(None, None)
    return functions


def _find(root: Any, name: str) -> Any:
    """The attribute of a dotted name, or None."""
    for part in name.split("."):
        root = getattr(root, part, None)
    return root


UFUNCS: dict[np.ufunc, str] = _by_name(
    """
    add subtract multiply divide floor_divide remainder fmod divmod power float_power negative
    positive absolute fabs sign copysign nextafter rint floor ceil trunc square reciprocal sqrt
    cbrt exp exp2 expm1 log log2 log10 log1p logaddexp logaddexp2 heaviside hypot deg2rad rad2deg
    degrees radians conjugate sin cos tan sinh cosh tanh arcsin arccos arctan arctan2 arcsinh
    arccosh arctanh maximum minimum fmax fmin equal not_equal less less_equal greater greater_equal
    logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor isnan isinf
    isfinite signbit matmul vecdot matvec vecmat modf frexp ldexp gcd lcm spacing bitwise_count
    """,
    {
        "invert": "bitwise_invert",
        "left_shift": "bitwise_left_shift",
        "right_shift": "bitwise_right_shift",
    },
)
"""ufunc -> name of the graphgrad function that a call of it stands for."""

REDUCE: dict[np.ufunc, str] = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.logical_and: "all",
    np.logical_or: "any",
    np.logaddexp: "special.logsumexp",
}
"""ufunc -> name of the graphgrad function that its method `reduce` stands for."""

ACCUMULATE: dict[np.ufunc, str] = {
    np.add: "cumulative_sum",
    np.multiply: "cumulative_prod",
    np.maximum: "cummax",
    np.minimum: "cummin",
}
"""ufunc -> name of the graphgrad function that its method `accumulate` stands for."""

WHOLE: dict[str, dict[np.ufunc, str]] = {
    "reduce": REDUCE,
    "accumulate": ACCUMULATE,
    "reduceat": REDUCE,
}
"""Method -> ufunc -> name of the graphgrad function that does it in one node."""

BUILT: dict[str, Callable[..., Any]] = {
    "outer": outer_of,
    "reduce": reduce_with,
    "accumulate": accumulate_with,
    "reduceat": reduceat_with,
}
"""Method -> what builds it."""

ARGUMENTS: dict[str, tuple[str, ...]] = {
    "outer": (),
    "reduce": ("axis", "dtype", "keepdims", "initial", "where"),
    "accumulate": ("axis", "dtype"),
    "reduceat": ("axis", "dtype"),
}
"""Method -> the arguments it takes."""


@cache
def functions() -> dict[Callable[..., Any], str]:
    """NumPy function -> name of the graphgrad function that stands for it, where there is one.

    All functions of NumPy that ask their arguments for __array_function__.
    """
    kind, names = type(np.sum), {}
    for prefix, module in (("", np), ("linalg.", np.linalg), ("fft.", np.fft)):
        for name, fn in vars(module).items():
            if isinstance(fn, kind) and name[0] != "_" and fn not in names:
                names[fn] = prefix + fn.__name__
    return {**names, **_by_name("", {"fix": "trunc", "select": "where_first"})}


def _real_if_close(a: Tensor, tol: float = 100) -> Tensor:
    """Of a complex tensor that depends on values."""
    if kind_of(a.dtype) == "c":
        raise _unsupported(np.real_if_close, (a,))
    return a


def _min_scalar_type(a: Tensor) -> Any:
    """Of arrays their dtype; of a number that depends on its value."""
    if not a.ndim:
        raise _unsupported(np.min_scalar_type, (a,))
    return a.dtype


def _einsum_path(*operands: Any, **kwargs: Any) -> Any:
    """NumPy's, which reads shapes."""
    return np.einsum_path(*map(_of_its_shape, operands), **kwargs)


def _of_its_shape(x: Any) -> Any:
    """An array of the shape of a tensor, without memory of that size; what is none as it is."""
    if not isinstance(x, Tensor):
        return x
    if not x.type.static:
        raise _symbolic("np.einsum_path", (x,), "It takes known lengths.")
    return np.broadcast_to(np.zeros((), np.int8), lengths(x.type))


ANSWERS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: a.size if axis is None else a.shape[axis],
    np.copy: lambda a, order="K", subok=False: a,
    np.iscomplexobj: lambda x: kind_of(x.dtype) == "c",
    np.isrealobj: lambda x: kind_of(x.dtype) != "c",
    np.result_type: lambda *args: np.result_type(*map(_type_of, args)),
    np.can_cast: lambda from_, to, casting="safe": np.can_cast(
        _type_of(from_), _type_of(to), casting
    ),
    np.common_type: lambda *arrays: np.common_type(*[np.empty(0, _type_of(a)) for a in arrays]),
    np.real_if_close: _real_if_close,
    np.min_scalar_type: _min_scalar_type,
    np.einsum_path: _einsum_path,
    np.array2string: lambda a, *_, **__: str(a),
    np.array_repr: lambda arr, *_, **__: repr(arr),
    np.array_str: lambda a, *_, **__: str(a),
}
"""What is known of a tensor without a value."""

LIKE: dict[Callable[..., Any], int | None] = {
    np.zeros_like: 0,
    np.empty_like: 0,
    np.ones_like: 1,
    np.full_like: None,
}
"""Functions that take the shape of another array, or one that is given; and what they fill in."""

_CHANGED = "Tensors never change; use gg.at(x)[key].set(values), a new tensor."
INSTEAD: dict[str, str] = {
    "copyto": "Tensors never change; use gg.where(mask, new, old), or gg.at(x)[key].set(values).",
    "put": _CHANGED,
    "put_along_axis": _CHANGED,
    "place": "Tensors never change; use gg.where(mask, new, old), or gg.at(x)[mask].set(value).",
    "putmask": "Tensors never change; use gg.where(mask, new, old), or gg.at(x)[mask].set(value).",
    "fill_diagonal": "Tensors never change; use gg.at(x)[gg.diag_indices(n)].set(values).",
    "save": "Use gg.save for graphs, or gg.evaluate(t, feeds) for a value to save.",
    "savez": "Use gg.save for graphs, or gg.evaluate(t, feeds) for a value to save.",
    "may_share_memory": "A tensor has no memory: only values have.",
    "shares_memory": "A tensor has no memory: only values have.",
    "real_if_close": "Its dtype depends on values; use gg.real, after gg.imag was checked.",
    "min_scalar_type": "The smallest dtype of a number depends on its value.",
}
_RENAMED = {"a_min": "min", "a_max": "max", "ddof": "correction"}
_LAYOUTS = ("K", "C", "A", "F")
_HARMLESS: dict[str, tuple[Any, ...]] = {
    "where": (True,),
    "casting": ("same_kind", "unsafe"),
    "order": _LAYOUTS,
    "subok": (True, False),
    "copy": (True, False),
    "device": ("cpu",),
    "kind": ("quicksort", "mergesort", "heapsort", "stable", "introselect", "sort"),
    "optimize": (True, False, "greedy", "optimal"),
    "overwrite_input": (True, False),
    "assume_unique": (True, False),
}
"""What means nothing of a tensor, of a function of ours without such an argument: how values lie in
memory, whether they are copied, by which algorithm the same result is found."""
_WHY = {
    "out": "a tensor is never written into, and an array cannot take a tensor; use the result",
    "dtype": "cast the operands or the result with .astype",
    "where": "use gg.where(condition, x, y)",
    "initial": "combine the result with it",
}


_AT = "Tensors never change; use gg.at(x)[key].add(values) and its like, or gg.add_at."


# --- the protocol ------------------------------------------------------------------------------


def array_ufunc(self: Tensor, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Tensor.__array_ufunc__: what np.exp(x) and np.ones(3) * x build."""
    name = UFUNCS.get(ufunc)
    if method == "__call__":
        target = _ours(name)
        if target is None:
            raise _unsupported(ufunc, inputs)
        inputs = _cast_first(ufunc, inputs, kwargs)
        _refuse_any(f"np.{ufunc.__name__}", kwargs)
        return target(*inputs)
    return _method(ufunc, name, method, inputs, kwargs)


def _method(
    ufunc: np.ufunc, name: str | None, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """What np.add.reduce(x) and its kin build."""
    spelled = f"np.{ufunc.__name__}.{method}"
    function, whole = _ours(name), _ours(WHOLE.get(method, {}).get(ufunc))
    if method == "at":
        raise _symbolic(spelled, inputs, _AT)
    if ufunc.nin != 2 or (function is None and whole is None):
        raise _symbolic(spelled, inputs, _nearest(method))
    chosen = {k: kwargs.pop(k) for k in ARGUMENTS[method] if k in kwargs}
    given = {k: v for k, v in chosen.items() if k == "axis" or not _means_nothing(k, v)}
    _refuse_any(spelled, kwargs)
    return BUILT[method](spelled, whole, function, *inputs, **given)


def _cast_first(
    ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """The operands of a ufunc in the dtype that `dtype=` says it computes in."""
    if kwargs.get("dtype") is None:
        return inputs
    if not any(c * ufunc.nin + "->" + c * ufunc.nout in ufunc.types for c in "dl"):
        return inputs  # of another dtype than its result: the keyword is refused
    dtype, casting = as_dtype(kwargs.pop("dtype")), kwargs.pop("casting", "same_kind")
    tensors = [as_tensor(x) for x in inputs]
    for t in tensors:
        if not can_cast(t.dtype, dtype, casting):
            raise DTypeError(
                f"np.{ufunc.__name__}(dtype={dtype}) of {t.name}: {t.type!r} (built at {t.where}): "
                f"casting={casting!r} does not allow it; cast it first"
            )
    return tuple([cast(t, dtype) for t in tensors])


def array_function(
    self: Tensor,
    func: Callable[..., Any],
    types: Iterable[type],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Tensor.__array_function__: what np.sum(x, axis=0) and np.concatenate([x, x]) build."""
    if not all(issubclass(t, Tensor | np.ndarray) for t in types):
        return NotImplemented
    if func in ANSWERS:
        return ANSWERS[func](*args, **kwargs)
    places = func is np.where and len(args) == 1
    name = "nonzero" if places else functions().get(func)
    target = _ours(name)
    if target is None or name in INSTEAD:
        raise _unsupported(func, (self,))
    if places:
        return target(*args)
    if func in LIKE and _arguments(func, args, kwargs).get("shape") is not None:
        return _of_another_shape(func, args, kwargs)
    args, kwargs = _translated(func, target, args, kwargs)
    return target(*args, **kwargs)


def _of_another_shape(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """What np.zeros_like and its like give with a shape: of their first argument only the dtype."""
    given = _arguments(func, args, kwargs)
    like, *_ = given.values()
    _refuse_any(_spelled(func), {k: given[k] for k in ("order", "subok", "device") if k in given})
    value = given.get("fill_value", LIKE[func])
    dtype = _type_of(as_tensor(like)) if given.get("dtype") is None else given["dtype"]
    made: Tensor = _ours("full")(given["shape"], value, dtype=dtype)
    return made


def array_namespace(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """Tensor.__array_namespace__: graphgrad itself, which follows the Python array API."""
    if api_version is not None and api_version not in API_VERSIONS:
        raise ValueError(f"array API version {api_version!r}; these are known: {API_VERSIONS}")
    return sys.modules["graphgrad"]


def _ours(name: str | None) -> Any:
    """The public function of this name, or None."""
    function = _find(sys.modules["graphgrad"], name) if name else None
    return function if callable(function) else None


# --- arguments ---------------------------------------------------------------------------------


def _translated(
    func: Callable[..., Any],
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments for our function from those of NumPy's; SymbolicError for one that ours lacks.

    By name where the names agree, else by place.
    """
    theirs, ours = numpy_signature(func).parameters, _parameters(target)
    if _takes_all(theirs) and _takes_all(ours):
        return args, {k: v for k, v in kwargs.items() if _keep(func, k, v, k in ours)}
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for place, (name, value) in enumerate(_arguments(func, args, kwargs).items()):
        kind = theirs[name].kind
        at = _named_like(name, ours) or _in_place_of(place, ours, theirs)
        if kind is inspect.Parameter.VAR_KEYWORD:
            named |= {k: v for k, v in value.items() if _keep(func, k, v, k in ours)}
        elif at is not None:
            named[at] = value
        elif place == len(positional) and _by_place_only(place, ours):
            positional.append(value)
        else:
            _keep(func, name, value, False, theirs[name].default)
    return tuple(positional), named


def _arguments(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call of NumPy's function, by name."""
    return numpy_signature(func).bind(*args, **kwargs).arguments


@cache
def _parameters(target: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(target).parameters


def _takes_all(parameters: Mapping[str, inspect.Parameter]) -> bool:
    return any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters.values())


def _named_like(name: str, ours: Mapping[str, inspect.Parameter]) -> str | None:
    """Our keyword of that name, or of what we call it."""
    for n in (name, _RENAMED.get(name, name)):
        if n in ours and ours[n].kind in (
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            inspect.Parameter.KEYWORD_ONLY,
        ):
            return n
    return None


def _in_place_of(
    place: int, ours: Mapping[str, inspect.Parameter], theirs: Mapping[str, inspect.Parameter]
) -> str | None:
    """Our parameter at this place, if it is none of theirs by name."""
    for p in list(ours.values())[place : place + 1]:
        if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD and p.name not in theirs:
            return p.name
    return None


def _by_place_only(place: int, ours: Mapping[str, inspect.Parameter]) -> bool:
    """Whether our parameter at this place is one that only its place can fill."""
    mine = list(ours.values())[place : place + 1]
    return any(p.kind is inspect.Parameter.POSITIONAL_ONLY for p in mine)


def _keep(func: Any, name: str, value: Any, known: bool, default: Any = None) -> bool:
    """Whether to pass an argument on; SymbolicError for one that would be lost."""
    if not known and value is not default:
        _refuse_any(_spelled(func), {name: value})
    return known


def _refuse_any(spelled: str, kwargs: Mapping[str, Any]) -> None:
    """SymbolicError naming the first argument that means something."""
    for name, value in kwargs.items():
        if _means_nothing(name, value):
            continue
        why = f": {_WHY[name]}" if name in _WHY else ""
        raise SymbolicError(f"{spelled}() of a graphgrad tensor does not take {name}={why}")


def _means_nothing(name: str, value: Any) -> bool:
    """Whether an argument is as if it was not given; only of plain values is that known."""
    empty = value is None or (isinstance(value, tuple) and all(v is None for v in value))
    if empty or value is np._NoValue:
        return True
    harmless = _HARMLESS.get(name, ())
    plain = isinstance(value, str | bool)
    return plain and any(type(value) is type(h) and value == h for h in harmless)


def _type_of(x: Any) -> Any:
    return x.dtype if isinstance(x, Tensor) else x


# --- errors ------------------------------------------------------------------------------------


def _spelled(func: Any) -> str:
    """How a user writes it: np.linalg.eig."""
    if isinstance(func, np.ufunc) and getattr(np, func.__name__, None) is not func:
        return func.__name__  # of SciPy, maybe: a ufunc does not say
    module = getattr(func, "__module__", None) or "numpy"
    return f"{module.replace('numpy', 'np', 1)}.{func.__name__}"


def _unsupported(func: Any, inputs: Iterable[Any]) -> SymbolicError:
    return _symbolic(_spelled(func), inputs, INSTEAD.get(func.__name__) or _nearest(func.__name__))


def _nearest(name: str) -> str:
    """A sentence with the function of ours whose name is nearest, and the way out of the graph."""
    if _ours(f"special.{name}") is not None:
        return f"Write gg.special.{name}."
    face = vars(sys.modules["graphgrad"])
    known = [n for n, fn in face.items() if callable(fn) and n.islower() and n[0] != "_"]
    near = _difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    sentence = f"The nearest name in graphgrad is gg.{near[0]}. " if near else ""
    return f"{sentence}gg.evaluate(t, feeds) gives a value to apply it to."


def _symbolic(spelled: str, inputs: Iterable[Any], hint: str) -> SymbolicError:
    tensor = next((t for t in inputs if isinstance(t, Tensor)), None)
    of = "" if tensor is None else f" of {tensor.name} ({tensor.type!r}, built at {tensor.where})"
    return SymbolicError(f"graphgrad has no node for {spelled}(){of}.\n{hint}".rstrip())
