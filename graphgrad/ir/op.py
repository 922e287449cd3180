"""What an op is: a frozen, interned value that infers types, computes, and knows its gradient."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from inspect import get_annotations
from typing import Any, ClassVar, Self, dataclass_transform
from weakref import WeakValueDictionary

import numpy as np

from ..base.errors import DTypeError
from ..base.interned import Interned
from ..base.length import Length
from .facts import GROUPS, Derivative, Facts, Memory, Traits, joined, said_by
from .onnx import Onnx
from .strided import Lengths, Strided
from .types import Array, Shape, TensorType, elements

Types = tuple[TensorType, ...]
Gradients = Sequence[Any]
Samples = Iterator[tuple["Op", list[Array]]]


class OpTypes(dict[str, type["Op"]]):
    """Op types by name.

    Those of graphgrad are imported as they are used. Where a name is not among them, or all are
    asked for, the rest is imported first. Names that begin with a small letter are users' own.
    """

    def here(self, name: str) -> type[Op] | None:
        """The op type of a name, if it was imported."""
        return super().get(name)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or self._follows(name)

    def __missing__(self, name: str) -> type[Op]:
        if self._follows(name):
            return self[name]
        raise KeyError(name)

    def _follows(self, name: object) -> bool:
        """Whether it is that of an op type once all are imported."""
        if isinstance(name, str) and name[:1].isupper():
            _import_all()
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> type[Op] | Any:
        """The op type of a name, or the default."""
        try:
            return self[name]
        except KeyError:
            return default

    def __iter__(self) -> Iterator[str]:
        _import_all()
        return super().__iter__()

    def __len__(self) -> int:
        _import_all()
        return super().__len__()

    def keys(self) -> Any:
        """All names."""
        _import_all()
        return super().keys()

    def values(self) -> Any:
        """All op types."""
        _import_all()
        return super().values()

    def items(self) -> Any:
        """All names, each with its op type."""
        _import_all()
        return super().items()


def _import_all() -> None:
    import_module("graphgrad.vocabulary")


OP_TYPES = OpTypes()
OWN = __name__.partition(".")[0] + "."
MADE = 1024  # ops of a class that are kept when nobody holds them


class OfKernel:
    """What an op says of its kernel, and would be wrong of another one."""

    traits: ClassVar[Traits] = Traits.defaults()
    memory: ClassVar[Memory] = Memory(alias=False, reshapes=False)  # it may still be a view
    shape_only: ClassVar[tuple[int, ...]] = ()
    index_inputs: ClassVar[tuple[tuple[int, int], ...]] = ()
    onnx: ClassVar[Onnx | None] = None

    def aliases(self, inputs: Types, outputs: Types) -> bool:
        """Whether the outputs alias the first input, for these types."""
        return self.memory.alias

    def strided(self, x: Strided, shape: Lengths) -> Strided | None:
        """Where the elements of its output, of this shape, lie in the memory of the first input.

        x: where those of the input do. None: it is not a view of it, or not of such a one.
        """
        return x.reshaped(shape) if self.memory.reshapes else None

    def static(self, inputs: Types) -> Op | None:
        """The op of its first input alone that does the same, where these types are static.

        None: it takes no shape from another input.
        """
        return None

    def decompose(self, make: Any) -> Any:
        """The output made of other ops that compute it call by call; None: it is not taken apart.

        make(op, *tensors) is op of these, make.inputs what there is to read, all of known lengths.
        Element-wise parts and reductions can share loops with what stands around them.
        """
        return None

    def to_onnx(self, to: Any, *xs: Any) -> Any:
        """Its outputs, one or a tuple, as values of ONNX made of those of its inputs.

        to.Mul(x, 2.0, ...) is an operator of values, arrays and numbers, attributes by name;
        to.apply(op, *xs) another op, to.traced(f, *xs) what f(xp, *tensors) builds as kernels do. A
        value has shape and dtype. None: what the kernel builds of tensors. NoOnnxForm: why not.
        """
        onnx = self.onnx
        return None if onnx is None else to(onnx.name, *xs, **onnx.to_attributes(self))

    @classmethod
    def from_onnx(cls, call: Any) -> Any:
        """The outputs, one or a tuple, that a call of the operator `onnx.name` means here.

        call.inputs are tensors, arrays where known, None where left out; call.attributes a dict;
        call.build(op, *xs) is op of them.
        """
        assert cls.onnx is not None
        return call.build(cls.onnx.from_attributes(cls, call.attributes), *call.inputs)


OF_KERNEL = {name: value for name, value in vars(OfKernel).items() if not name.startswith("__")}


@dataclass_transform(frozen_default=True, eq_default=False)
class Op(OfKernel):
    """One kind of computation with its attributes.

    A subclass is one op type: its annotations are its attributes, in order. Two ops of one type
    with equal attributes are the same object, which lives as long as the process if they are plain
    values, and as long as it is referenced if they may hold others. A node is one application of an
    op to tensors.

    traits      what holds of the values it computes (`Traits`)
    memory      how its outputs lie in the memory of the first input (`Memory`)
    derivative  what is known of its gradient (`Derivative`), beside
    linear      where it is linear: "joint" in all inputs together, "each" in one at a time while
                the others stay, or the places of the inputs in which it is jointly linear while
                the others stay; (): nowhere that is known
    differentiable it has a gradient
    pure        equal inputs give equal outputs, and nothing else happens: may be merged or folded
    source      takes no inputs and is never a member of a region (placeholders, variables)
    elementwise one output, each element made from the same element of the broadcast inputs
    broadcasts  the driver sums gradients over the axes that were broadcast
    axis_attrs  the names of its attributes that count axes of the inputs from the front
    stacks      it is for matrices or vectors in the last axes; the axes before are those of a stack
    shape_only  inputs, by place, of which it reads the shape and nothing else
    index_inputs (input, axis) for each input whose elements are indices along that axis of the
                first input: from -N to N - 1 for a length N. Others are an IndexError of a run
    bodies      the programs that run inside it, where it is control flow; body_names says what
                they are called
    runs        the ops whose kernels its own calls
    flop_free   takes no floating point operations: makes, moves or converts data
    onnx        the operator of ONNX that it is, with attributes to and from there; what is not one
                operator with the same meaning writes `to_onnx` and `from_onnx`
    revision    which meaning of type and attributes this is, as files say: whoever changes what is
                computed, or renames an attribute, counts it up and writes `from_revision`
    domain      where samples are drawn
    opened_by   of a program of another framework, which is one node here: the public function that
                builds its operations instead

    The first three are groups, of the class alone; what a subclass says of a group joins what its
    bases say. A subclass that writes another kernel says again what was said of the kernel
    (`OfKernel`).

    >>> op = gg.sum([1.0, 2.0]).node.op
    >>> op, op is gg.op_types()["ReduceSum"]((0,), False)
    (ReduceSum(axes=(0,), keepdims=False), True)
    """

    type: ClassVar[str] = "Op"
    fields: ClassVar[tuple[str, ...]] = ()
    derivative: ClassVar[Derivative] = Derivative()
    linear: ClassVar[str | tuple[int, ...]] = ()
    differentiable: ClassVar[bool] = True
    pure: ClassVar[bool] = True
    source: ClassVar[bool] = False
    elementwise: ClassVar[bool] = False
    broadcasts: ClassVar[bool] = False
    axis_attrs: ClassVar[tuple[str, ...]] = ()
    stacks: ClassVar[bool] = False
    bodies: ClassVar[tuple[Any, ...]] = ()
    body_names: ClassVar[tuple[str, ...]] = ()
    runs: ClassVar[tuple[Op, ...]] = ()
    flop_free: ClassVar[bool] = False
    revision: ClassVar[int] = 1
    domain: ClassVar[tuple[float, float]] = (-2.0, 2.0)
    opened_by: ClassVar[str] = ""

    _made: ClassVar[Interned[Op]] = Interned(0)
    _mortal: ClassVar[WeakValueDictionary[Any, Op]] = WeakValueDictionary()
    _lasting: ClassVar[bool] = False
    _defaults: ClassVar[dict[str, Any]] = {}
    _said: ClassVar[dict[str, Facts]] = {}
    _interned: ClassVar[bool] = True
    _types: dict[Any, Types]

    def __init_subclass__(cls, *, abstract: bool = False, interned: bool = True) -> None:
        own = [n for n, a in get_annotations(cls).items() if "ClassVar" not in str(a)]
        cls.fields = tuple(dict.fromkeys((*cls.fields, *own)))
        cls._defaults = {**cls._defaults, **{n: cls.__dict__[n] for n in own if n in cls.__dict__}}
        cls._made = Interned(MADE)
        cls._interned = interned
        if hidden := [n for n in own if n in _RESERVED]:
            raise TypeError(
                f"{cls.__name__} has attributes named as methods or facts of every op: {hidden}. "
                "Declare a fact without an annotation, or give the attribute another name."
            )
        cls._said = said = said_by(cls)
        if "kernel" in cls.__dict__ and any(map(_has_kernel, cls.__bases__)):
            for name, value in OF_KERNEL.items():
                if name in GROUPS:
                    said[name] = said[name].over(value) if name in said else value
                elif name not in cls.__dict__:
                    setattr(cls, name, value)
        for name in GROUPS if len(cls.__bases__) > 1 else said:
            setattr(cls, name, joined(cls, name))
        if not abstract:
            cls.type = cls.__dict__.get("type", cls.__name__)
            known = OP_TYPES.here if cls.__module__.startswith(OWN) else OP_TYPES.get
            home = (known(cls.type) or cls).__module__
            if home != cls.__module__:
                raise ValueError(
                    f"there are two op types named {cls.type!r}, in {home} and {cls.__module__}; "
                    "set `type = ...` in the class to rename one"
                )
            OP_TYPES[cls.type] = cls

    def __new__(cls, *args: Any, **kwargs: Any) -> Op:
        """The op with these attributes: the same object every time."""
        values = args if len(args) == len(cls.fields) and not kwargs else cls._bind(args, kwargs)
        if cls._interned:
            key = (values, tuple(map(_kind, values)))
            try:
                cached = cls._made.get(key)
            except TypeError as error:
                given = dict(zip(cls.fields, values, strict=True))
                raise TypeError(
                    f"{cls.type} got {given}: {error}. Attributes are immutable: use a tuple "
                    "instead of a list, or pass an array as an input."
                ) from None
            if cached is not None:
                return cached
            if not lasting(values):
                return cls._made_to_die(values, hash(key))
            return cls._made.add(key, lambda: cls._new(values, lasting=True))
        return cls._new(values)

    @classmethod
    def _made_to_die(cls, values: tuple[Any, ...], hashed: int) -> Op:
        """The op with attributes that may hold it in turn: of them, only a hash is remembered."""
        key = cls, hashed
        cached = cls._mortal.get(key)
        if cached is not None:
            others = tuple(cached.attrs.values())
            if others == values and _kind(others) == _kind(values):
                return cached
        op = cls._mortal[key] = cls._new(values)
        return op

    @classmethod
    def _new(cls, values: tuple[Any, ...], lasting: bool = False) -> Op:
        op = object.__new__(cls)
        op.__dict__.update(zip(cls.fields, values, strict=True))
        op.__dict__.update(_types={}, _lasting=lasting)
        return op

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    @classmethod
    def _bind(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        given = dict(zip(cls.fields, args, strict=False)) | kwargs
        unknown = set(kwargs) - set(cls.fields)
        twice = set(kwargs) & set(cls.fields[: len(args)])
        if unknown or twice or len(args) > len(cls.fields):
            raise TypeError(
                f"{cls.type} takes {cls.fields}, got {args} {kwargs}; the attributes of an op are "
                "what its class annotates"
            )
        try:
            return tuple(given[n] if n in given else cls._defaults[n] for n in cls.fields)
        except KeyError as missing:
            raise TypeError(f"{cls.type} needs {missing}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{self.type} is an op and never changes")

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes by name."""
        return {n: self.__dict__[n] for n in self.fields}

    def replace(self, **attrs: Any) -> Self:
        """The op with other values for some attributes."""
        made: Any = type(self)(**{**self.attrs, **attrs})
        return made  # type: ignore[no-any-return]

    @property
    def open_lengths(self) -> frozenset[str]:
        """The named lengths in its attributes and in what its bodies compute."""
        if "_open" not in self.__dict__:
            _note_open_lengths(self)
        names: frozenset[str] = self.__dict__["_open"]
        return names

    def with_sizes(self, sizes: Mapping[str, Any]) -> Op:
        """The op with these values for named lengths in its attributes."""
        names = self.fields
        values = [_sized(self.__dict__[n], sizes) for n in names]
        same = all(v is self.__dict__[n] for n, v in zip(names, values, strict=True))
        return self if same else type(self)(*values)

    def __repr__(self) -> str:
        return f"{self.type}({', '.join(f'{k}={v!r}' for k, v in self.attrs.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _remake, (type(self), tuple(self.__dict__[n] for n in self.fields))

    def __copy__(self) -> Op:
        return self

    def __deepcopy__(self, memo: Any) -> Op:
        return self

    # --- what a subclass writes -----------------------------------------------------------------

    # (*Any, **Any) is how mypy is told that subclasses name their own arguments.

    def infer(self, *types: Any, **_: Any) -> Types:
        """The types of the outputs; ShapeError or DTypeError where the inputs do not fit."""
        raise NotImplementedError(f"{self.type} has no infer(self, *types)")

    def kernel(self, *args: Any, **_: Any) -> Any:
        """kernel(xp, *arrays): the output, or a tuple of them, computed in array namespace xp."""
        raise NotImplementedError(f"{self.type} has no kernel(self, xp, *arrays)")

    def vjp(self, *args: Any, **_: Any) -> Gradients:
        """vjp(node, *dys): one gradient per input: a tensor, ZERO or NO_GRAD."""
        raise DTypeError(f"{self.type} has no gradient")

    def batch(self, batch: Any) -> Any:
        """The outputs for a batch (a `Batch` of ops/batching.py), all with the batch axis first.

        As few nodes as can be; None: there is no such form for these inputs, and the op is run for
        one example after the other, which a PerformanceWarning says.
        """
        if self.axis_attrs:
            attrs = self.attrs
            moved = self.replace(**{n: _behind(attrs[n]) for n in self.axis_attrs})
            return batch.build(moved, *batch.every())
        if self.stacks:
            return batch.build(self, *batch.every())
        if not self.elementwise:
            return None
        if self.broadcasts:
            return batch.build(self, *batch.aligned())
        return batch.build(self, *batch.every()) if batch.alike else None

    def reduced_axes(self, shape: Shape) -> tuple[int, ...]:
        """The axes over which a reduction of a value of this shape goes."""
        raise NotImplementedError(f"{self.type}.reduced_axes")

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """The floating point operations for types of known lengths; None: that is not known.

        A multiplication and the addition that goes with it are two; an element-wise op is one for
        each element that it makes.
        """
        if self.flop_free or self.memory.view:
            return 0
        return elements(outputs[0]) if self.elementwise else None

    def returned(self, outputs: Sequence[Any]) -> Sequence[Any]:
        """Those of its outputs that the user sees; others are for its gradient."""
        return outputs

    def check_bodies(self, *types: TensorType) -> None:
        """ShapeError where inputs of these types are not what the bodies take and give."""

    def replace_bodies(self, bodies: Sequence[Any]) -> Op:
        """The op with other bodies, which may be anything: files put what stands for them there."""
        raise NotImplementedError(f"{self.type}.replace_bodies")

    @classmethod
    def from_revision(cls, revision: int, attrs: dict[str, Any]) -> Op:
        """The op that an older file means by these attributes."""
        raise NotImplementedError(f"{cls.type}.from_revision({revision})")

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        """Ops of this type with arrays to apply them to; the laws are tested on these."""
        return iter(())


_RESERVED = frozenset((*dir(Op), *dir(type), *get_annotations(Op)))
"""The names of methods and facts of every op, which are not attributes of one."""


def _behind(axes: Any) -> Any:
    """Axes behind one more in front."""
    return tuple(a + 1 for a in axes) if isinstance(axes, tuple) else axes + 1


def _has_kernel(base: type) -> bool:
    return getattr(base, "kernel", Op.kernel) is not Op.kernel


def _note_open_lengths(op: Op) -> None:
    """Have an op know its open lengths, those of its bodies first, however deep they lie."""
    stack = [op]
    while stack:
        op = stack[-1]
        inner = [node.op for body in op.bodies for node in body.nodes]
        unknown = [o for o in inner if "_open" not in o.__dict__]
        if unknown:
            stack += unknown
            continue
        attrs = _names_in([op.__dict__[n] for n in op.fields])
        op.__dict__["_open"] = attrs.union(*[o.__dict__["_open"] for o in inner])
        stack.pop()


def _names_in(values: Sequence[Any]) -> frozenset[str]:
    names: frozenset[str] = frozenset()
    for value in values:
        if isinstance(value, Length):
            names |= value.names
        elif type(value) is tuple:
            names |= _names_in(value)
    return names


def _sized(value: Any, sizes: Mapping[str, Any]) -> Any:
    if isinstance(value, Length):
        return value.at(sizes)
    if type(value) is tuple:
        made = tuple([_sized(v, sizes) for v in value])
        return value if all(map(operator.is_, made, value)) else made
    return value


_SIGNED = float | complex | np.inexact
"""Numbers of which two may be equal and differ: 0.0 and -0.0."""


def _kind(value: Any) -> Any:
    """What tells equal values apart: 1, 1.0 and True; 0.0 and -0.0."""
    if isinstance(value, tuple):
        return tuple(map(_kind, value))
    if isinstance(value, _SIGNED):
        return type(value), repr(value)
    return type(value)


_PLAIN = (
    *(int, float, complex, str, bytes, type(None), np.generic, np.dtype),
    *(Length, TensorType),
)


def lasting(value: Any) -> bool:
    """Whether caches may keep an attribute, or an op, for ever: it cannot hold a graph."""
    if isinstance(value, tuple):
        return all(map(lasting, value))
    return value._lasting if isinstance(value, Op) else isinstance(value, _PLAIN)


def _remake(cls: type[Op], values: tuple[Any, ...]) -> Op:
    return cls(*values)


def op_types() -> dict[str, type[Op]]:
    """Every op type by name.

    Returns: a dict, a copy.

    >>> gg.op_types()["Exp"].__doc__
    'y = e**x. Gradient: dx = dy * y [DLMF 4.7(ii)].'
    """
    return dict(OP_TYPES)
