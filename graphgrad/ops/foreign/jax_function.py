"""JAX functions as ops, with JAX's gradient, which is again such an op."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from ...base.errors import (
    DTypeError,
    ExecutionError,
    GraphGradError,
    MissingBackendError,
    ShapeError,
)
from ...base.lazy import lazy_module
from ...base.length import Length
from ...base.position import of_function, show
from ...base.tree import flatten, tree_map
from ...ir.build import build
from ...ir.node import Node, Tensor
from ...ir.onnx import NoOnnxForm
from ...ir.op import Gradients, Op, Samples, Types
from ...ir.types import Array, Dim, TensorType, merge_dims, tensor_type
from ..base import NO_GRAD, Derivative, TensorLike, as_tensor

__all__ = ["from_jax"]

jax: Any = lazy_module("jax")
_export: Any = lazy_module("jax.export")

Flat = Callable[..., tuple[Any, ...]]
Step = tuple[Any, ...]


class JaxFunction(Op):
    """ys = fn(*xs), a function of JAX. Gradient: dxs = its transposed derivative at xs, by jax.vjp.

    Source: reverse mode as linearise and transpose [Radul et al. 2023, "You Only Linearize Once"].

    fn     the user's function
    args   the structure of its arguments, with the places of the inputs as leaves
    steps  what is done to it, in order: ("vjp", how many inputs, by which of them, of which
           outputs), ("vmap", which inputs have a batch axis)
    """

    fn: Callable[..., Any]
    args: Any
    steps: tuple[Step, ...] = ()
    derivative = Derivative(sparse=True)
    opened_by = "gg.interop.open_jax"

    @property
    def linear(self) -> tuple[int, ...]:  # type: ignore[override]
        """A transposed derivative is linear in the gradients that it is given."""
        for kind, *rest in reversed(self.steps):
            if kind == "vjp":
                count, _, of = rest
                return tuple(range(count, count + len(of)))
        return ()

    @property
    def label(self) -> str:
        """The function's name and where it was defined."""
        name = getattr(self.fn, "__name__", repr(self.fn))
        return f"{name!r} ({show(of_function(self.fn))})"

    @property
    def flat(self) -> Flat:
        """It as a function of its inputs, which gives a tuple."""
        function: Flat = _flat_function(self.fn, self.args)
        for kind, *rest in self.steps:
            function = _pullback(function, *rest) if kind == "vjp" else _mapped(function, *rest)
        return function

    def infer(self, *types: TensorType) -> Types:
        """What JAX says, without running it; a length of its own for each that is unknown."""
        if not self.steps:
            return self._said_by_jax(self.flat, types)
        kind, *rest = self.steps[-1]
        before = self.replace(steps=self.steps[:-1])
        if kind == "vmap":
            return _of_batch(before, types, rest[0])
        count, by, _ = rest
        if not before.steps:
            self._said_by_jax(_seeded(self.flat, before.flat, rest), types[:count])
        return tuple([types[i] for i in by])

    def _said_by_jax(self, flat: Flat, types: Types) -> Types:
        given, symbols = _structs(types)
        try:
            with jax.enable_x64(True):
                structs = jax.eval_shape(flat, *given)
        except GraphGradError:
            raise
        except Exception as error:
            if symbols:
                raise self._unknown(types, error) from error
            error.add_note(f"in the JAX function {self.label}, for {_shown(types)}")
            raise
        return tuple([_type(y, symbols) for y in structs])

    def _unknown(self, types: Types, error: Exception) -> ShapeError:
        said = str(error).partition("\n")[0]
        return ShapeError(
            f"the JAX function {self.label} has no known output type for {_shown(types)}: {said}\n"
            "Give equal lengths one name, as in gg.placeholder(('N', 3)), or make them known."
        )

    def kernel(self, xp: Any, *arrays: Any) -> Any:
        made = self._on_numpy(arrays) if xp is np else self._traced(arrays)
        return made[0] if len(made) == 1 else made

    def to_onnx(self, to: Any, *xs: Any) -> Any:
        raise NoOnnxForm(f"{self.type} has no form in ONNX: it calls a function of JAX")

    def _on_numpy(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        """Compiled once for each set of shapes; JAX reads the arrays where they are."""
        compiled = self.__dict__.get("_compiled")
        if compiled is None:
            compiled = self.__dict__["_compiled"] = jax.jit(self.flat)
        with jax.enable_x64(True):
            made = [np.asarray(y) for y in compiled(*arrays)]
        return tuple([_apart(y, arrays) for y in made])

    def _traced(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """A part of what JAX traces; ExecutionError where it is not what was inferred."""
        made = self.flat(*arrays)
        if all(type(n) is int for x in arrays for n in x.shape):
            types = self.infer(*[tensor_type(x.shape, x.dtype) for x in arrays])
            for y, t in zip(made, types, strict=True):
                if y.dtype != t.dtype:
                    raise ExecutionError(
                        f"the JAX function {self.label} promised {t!r}, but returned {y.dtype}: "
                        "are JAX's 64-bit types off?"
                    )
        return made

    def vjp(self, node: Node, *dys: Tensor) -> Gradients:
        by = tuple([i for i, x in enumerate(node.inputs) if x.type.differentiable])
        of = tuple([i for i, dy in enumerate(dys) if dy is not None])
        step = ("vjp", len(node.inputs), by, of)
        pulled = build(
            self.replace(steps=(*self.steps, step)), (*node.inputs, *[dys[i] for i in of])
        )
        dxs = dict(zip(by, pulled.outputs, strict=True))
        return [dxs.get(i, NO_GRAD) for i in range(len(node.inputs))]

    def batch(self, batch: Any) -> Any:
        step = ("vmap", batch.flags)
        return batch.build(self.replace(steps=(*self.steps, step)), *batch.inputs)

    def __repr__(self) -> str:
        return f"JaxFunction({self.label}{''.join(f', {kind}' for kind, *_ in self.steps)})"

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        if jax is None:
            return
        x, dy = rng.normal(size=(2, 2))
        yield cls(_wave, (0,)), [x]
        yield cls(_wave, (0,), (("vjp", 1, (0,), (0,)),)), [x, dy]


def _wave(x: Any) -> Any:
    return x * jax.numpy.sin(x)


# --- functions of flat arrays -------------------------------------------------------------------


def _frozen(tree: Any) -> Any:
    """A tree as a value that never changes: a tuple is itself."""
    if isinstance(tree, dict):
        return "dict", tuple([(key, _frozen(tree[key])) for key in tree])
    if isinstance(tree, list):
        return "list", tuple(map(_frozen, tree))
    if isinstance(tree, tuple):
        if hasattr(tree, "_fields"):
            return "record", type(tree), tuple(map(_frozen, tree))
        return "tuple", tuple(map(_frozen, tree))
    return tree


def _filled(frozen: Any, leaves: Sequence[Any]) -> Any:
    """The tree, with leaves by their places."""
    if isinstance(frozen, int):
        return leaves[frozen]
    kind, *_, parts = frozen
    if kind == "dict":
        return {key: _filled(part, leaves) for key, part in parts}
    filled = [_filled(part, leaves) for part in parts]
    if kind == "record":
        return frozen[1](*filled)
    return filled if kind == "list" else tuple(filled)


def _flat_function(fn: Callable[..., Any], args: Sequence[Any]) -> Flat:
    def flat(*leaves: Any) -> tuple[Any, ...]:
        made = fn(*[_filled(arg, leaves) for arg in args])
        return tuple([jax.numpy.asarray(y) for y in jax.tree.leaves(made)])

    return flat


def _pullback(flat: Flat, count: int, by: Sequence[int], of: Sequence[int]) -> Flat:
    """The gradients of the inputs `by`, from those of the outputs `of`, behind all inputs."""

    def pulled(*arrays: Any) -> tuple[Any, ...]:
        xs, dys = arrays[:count], arrays[count:]

        def moved(*moving: Any) -> tuple[Any, ...]:
            given = dict(enumerate(xs)) | dict(zip(by, moving, strict=True))
            ys = flat(*given.values())
            return tuple([ys[i] for i in of])

        dxs: tuple[Any, ...] = jax.vjp(moved, *[xs[i] for i in by])[1](tuple(dys))
        return dxs

    return pulled


def _mapped(flat: Flat, flags: Sequence[bool]) -> Flat:
    mapped: Flat = jax.vmap(flat, tuple([0 if flag else None for flag in flags]))
    return mapped


def _apart(y: Array, arrays: Sequence[Array]) -> Array:
    """A result that shares no memory with what it was made of: JAX may hand an input on."""
    return y.copy() if any(np.may_share_memory(y, x) for x in arrays) else y


def _seeded(pulled: Flat, flat: Flat, step: Sequence[Any]) -> Flat:
    """A transposed derivative for ones."""
    _, _, of = step

    def run(*xs: Any) -> tuple[Any, ...]:
        ys = flat(*xs)
        return pulled(*xs, *[jax.numpy.ones_like(ys[i]) for i in of])

    return run


# --- types --------------------------------------------------------------------------------------


def _structs(types: Types) -> tuple[list[Any], dict[str, Length | None]]:
    """Types as JAX has them, and what its names for open lengths stand for."""
    shapes, symbols = symbolic_shapes(types)
    return [jax.ShapeDtypeStruct(s, t.dtype) for s, t in zip(shapes, types, strict=True)], symbols


def symbolic_shapes(
    types: Sequence[TensorType], reserved: Callable[[str], bool] = lambda name: True
) -> tuple[list[Any], dict[str, Length | None]]:
    """Shapes with JAX's symbolic lengths, all in one scope, and what each of its names stands for.

    reserved: whether a name of a length must be another one in JAX; by default all are.
    """
    given = {n for t in types for d in t.shape if isinstance(d, Length) for n in d.names}
    fresh = filter(lambda name: name not in given, map("d{}".format, count()))
    symbols: dict[str, Length | None] = {}
    names: dict[str, str] = {}
    for t in types:
        for d in t.shape:
            if d is None:
                symbols[next(fresh)] = None
            for name in sorted(d.names - names.keys()) if isinstance(d, Length) else ():
                names[name] = next(fresh) if reserved(name) else name
                symbols[names[name]] = Length(name)
    if not symbols:
        return [t.shape for t in types], symbols
    scope = _export.SymbolicScope()
    dims = dict(zip(symbols, _export.symbolic_shape(", ".join(symbols), scope=scope)))
    unnamed = iter([dims[name] for name, d in symbols.items() if d is None])
    sizes = {name: dims[there] for name, there in names.items()}

    def dim(d: Dim) -> Any:
        return next(unnamed) if d is None else d.at(sizes) if isinstance(d, Length) else d

    return [tuple([dim(d) for d in t.shape]) for t in types], symbols


def _type(y: Any, symbols: Mapping[str, Length | None]) -> TensorType:
    """JAX's type of an output as ours; DTypeError for input that is not a number."""
    if jax.dtypes.issubdtype(y.dtype, jax.dtypes.extended):
        raise DTypeError(f"an output of a JAX function is of {y.dtype}; tensors hold numbers")
    return tensor_type(tuple([_length(d, symbols) for d in y.shape]), y.dtype)


def _length(d: Any, symbols: Mapping[str, Length | None]) -> Dim:
    """JAX's length as ours; None where it is made of one that is not known."""
    if isinstance(d, int):
        return d
    length = Length(str(d))
    known = {name: s for name in length.names if (s := symbols.get(name)) is not None}
    return length.at(known) if known.keys() == length.names else None


def _of_batch(op: Op, types: Types, flags: Sequence[bool]) -> Types:
    """The types of what an op gives for a batch, which lies in the first axis of some inputs."""
    count: Dim = None
    single = []
    for t, flag in zip(types, flags, strict=True):
        if flag:
            count, t = merge_dims(count, t.shape[0]), tensor_type(t.shape[1:], t.dtype)
        single.append(t)
    return tuple([tensor_type((count, *t.shape), t.dtype) for t in op.infer(*single)])


def _shown(types: Types) -> str:
    return f"({', '.join(map(repr, types))})"


# --- the user's side ----------------------------------------------------------------------------


def from_jax(fn: Callable[..., Any], *args: TensorLike | Any, name: str | None = None) -> Any:
    """Call a JAX function in a graph, as an op with the gradient that JAX has of it.

    Take `open_jax` if its contents should be marked, overridden, drawn, saved or exported: it
    builds each operation as a node. Take this for what cannot be opened, such as callbacks, and for
    what is to stay one node, which JAX compiles and runs as a whole.

    It runs on every backend: on "jax" and under `as_jax` it is traced with the rest, elsewhere JAX
    compiles it and reads the arrays where they are. It runs with 64-bit types on, so that float64
    stays float64. Regions around it are honoured as around any op. It has to be pure: it is traced,
    may be run again for a gradient, and what it reads besides its arguments is read once.

    Parameters:
        fn: a function of arrays, or of lists, tuples and dicts of them, that returns such or any
            other pytree.
        *args: tensors, or what becomes constants, in such structures.
        name: the node's name.

    Returns: what fn returns, with tensors for its arrays.

    Raises: MissingBackendError without JAX; ShapeError where fn does not say what it gives for
    lengths that are not known; DTypeError for random keys and where it returns no array; whatever
    fn raises for such shapes and dtypes, with a note that names it.

    Gradient: that of jax.vjp, of any order, each again such an op; so forward mode has it too.

    Source: reverse mode as linearise and transpose [Radul et al. 2023, "You Only Linearize Once"].

    >>> import jax.numpy as jnp
    >>> x = gg.constant([0.0, 3.0])
    >>> y = gg.interop.from_jax(lambda a: {"norm": jnp.hypot(a, 4.0)}, x)["norm"]
    >>> gg.evaluate([y, gg.gradients(y, x)])
    [array([4., 5.]), array([0. , 0.6])]
    """
    need_jax("from_jax()")
    if not callable(fn):
        raise TypeError(f"from_jax() takes a function of JAX arrays, got {fn!r}")
    leaves = [as_tensor(x) for x in flatten(list(args))]
    places = iter(range(len(leaves)))
    frozen = tuple([_frozen(tree_map(lambda _: next(places), arg)) for arg in args])
    node = build(JaxFunction(fn, frozen), tuple(leaves), name)
    return jax.tree.unflatten(_structure(node), node.outputs)


def _structure(node: Node) -> Any:
    """How fn lays out what it returns; DTypeError where there is nothing."""
    op, kept = node.op, []
    assert isinstance(op, JaxFunction)

    def noting(*args: Any) -> Any:
        made = op.fn(*args)
        kept.append(jax.tree.structure(made))
        return made

    given, _ = _structs(tuple([x.type for x in node.inputs]))
    with jax.enable_x64(True):
        jax.eval_shape(_flat_function(noting, op.args), *given)
    return kept[0]


def need_jax(who: str) -> None:
    """MissingBackendError without JAX."""
    if jax is None:
        raise MissingBackendError(f"{who} needs the package 'jax': pip install 'graphgrad[jax]'")
