"""What a function of torch does, seen on fake tensors: types, what it draws, reads and writes.

Fake tensors have a type and no numbers, so a trace costs next to nothing. A function whose steps
depend on numbers cannot be traced, and torch says so; what can be traced does the same in each run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import combinations, count
from typing import Any, NamedTuple

from ..base.length import Length
from ..ir.types import Dim, TensorType, tensor_type
from ..ops.foreign.torch_arrays import torch, torch_dtype

__all__ = ["Seen", "Watch", "fakes", "lengths_for", "seen_types", "watched"]

_dispatch: Any = import_module("torch.utils._python_dispatch")
_fake: Any = import_module("torch._subclasses.fake_tensor")
_pytree: Any = import_module("torch.utils._pytree")

STARTS = 101, 307, 701
"""Unknown lengths are tried as primes from there on: large enough for windows, equal to no other
length, and no product or sum of each other by chance."""

_STATISTICS = {"aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::miopen_batch_norm"}
"""These write into what they are given beside x, and their schemas do not say it."""


class Watch(_dispatch.TorchDispatchMode):  # type: ignore[misc]
    """`with Watch(inputs) as watch:` what is done meanwhile to tensors.

    random   whether random numbers are drawn
    written  the places of inputs that are written into
    foreign  shapes of written tensors that are neither inputs nor made meanwhile
    captured tensors that require a gradient and are neither
    """

    def __init__(self, inputs: Sequence[Any]) -> None:
        super().__init__()
        self.random = False
        self.written: set[int] = set()
        self.foreign: list[Any] = []
        self.captured: list[Any] = []
        self._places = {_memory(t): i for i, t in enumerate(inputs)}
        self._made: dict[int, Any] = {}  # memory -> a tensor, so that no other is made there

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        outside = [t for t in _tensors((args, kwargs)) if self._is_foreign(t)]
        self.random = self.random or torch.Tag.nondeterministic_seeded in func.tags
        if func is not torch.ops.aten.detach.default:
            self.captured += [t for t in outside if t.requires_grad]
        for t in _written(func, args, kwargs):
            if _memory(t) in self._places:
                self.written.add(self._places[_memory(t)])
            elif self._is_foreign(t):
                self.foreign.append(tuple(t.shape))
        returned = func(*args, **kwargs)
        if not (outside and any(r.alias_info for r in func._schema.returns)):
            self._made.update({_memory(t): t for t in _tensors(returned)})
        return returned

    def _is_foreign(self, t: Any) -> bool:
        return _memory(t) not in self._places and _memory(t) not in self._made


def _memory(t: Any) -> int:
    address: int = t.untyped_storage()._cdata
    return address


def _tensors(tree: Any) -> list[Any]:
    return [t for t in _pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]


def _written(func: Any, args: Any, kwargs: Any) -> Iterator[Any]:
    """The tensors that a call writes into."""
    schema = func._schema
    for place, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[place] if place < len(args) else kwargs.get(argument.name)
            yield from _tensors(value)
    if schema.name in _STATISTICS and args[5]:
        yield from _tensors(args[3:5])


class Seen(NamedTuple):
    """What was seen of a function.

    made     what it returned, of fake tensors
    random   whether it draws random numbers
    written  the places of inputs into which it writes
    foreign  shapes of what it writes into besides
    captured what it reads besides that requires a gradient
    """

    made: Any
    random: bool
    written: tuple[int, ...]
    foreign: list[Any]
    captured: list[Any]


def watched(call: Callable[..., Any], types: Sequence[TensorType], start: int = 0) -> Seen:
    """One run of a function of flat tensors, on fake ones of these types."""
    with _fake.FakeTensorMode(allow_non_fake_inputs=True):
        tensors = fakes(types, STARTS[start])
        with torch.no_grad(), Watch(tensors) as watch:
            made = call(*tensors)
    return Seen(made, watch.random, tuple(sorted(watch.written)), watch.foreign, watch.captured)


def fakes(types: Sequence[TensorType], start: int) -> list[Any]:
    """Tensors of these types, in the mode that is on."""
    lengths = lengths_for(types, start)
    return [
        torch.empty(shape, dtype=torch_dtype(t.dtype))
        for t, shape in zip(types, lengths, strict=True)
    ]


def lengths_for(types: Sequence[TensorType], start: int) -> list[tuple[int, ...]]:
    """Shapes in which unknown lengths are primes: one for each name, and for each None."""
    primes = (n for n in count(start) if all(n % d for d in range(2, int(n**0.5) + 1)))
    named: dict[str, int] = {}

    def length(d: Dim) -> int:
        if isinstance(d, int):
            return d
        if d is None:
            return next(primes)
        for name in sorted(d.names - named.keys()):
            named[name] = next(primes)
        return int(d.at(named))

    return [tuple([length(d) for d in t.shape]) for t in types]


def seen_types(
    inputs: Sequence[TensorType], traces: Sequence[Sequence[TensorType]]
) -> tuple[TensorType, ...]:
    """Types of known lengths, from traces at one or more sets of lengths, with the unknown ones."""
    if len(traces) == 1:
        return tuple(traces[0])
    known: dict[tuple[int, ...], Length] = {}
    shapes = zip(*[lengths_for(inputs, start) for start in STARTS], strict=True)
    for t, tried in zip(inputs, shapes, strict=True):
        for d, *numbers in zip(t.shape, *tried, strict=True):
            if isinstance(d, Length):
                known[tuple(numbers)] = d

    def shape(types: Sequence[TensorType]) -> tuple[Dim, ...]:
        return tuple([_length(n, known) for n in zip(*[t.shape for t in types], strict=True)])

    return tuple(tensor_type(shape(types), types[0].dtype) for types in zip(*traces, strict=True))


def _length(numbers: tuple[Any, ...], known: Mapping[tuple[int, ...], Length]) -> Dim:
    """What a length is that had these numbers: one, a known length, or one or two of these by
    arithmetic that fits every trace; None else."""
    first, *_ = numbers
    if len(set(numbers)) == 1:
        return first  # type: ignore[no-any-return]
    if numbers in known:
        return known[numbers]
    for of, d in known.items():
        slope, rest = divmod(numbers[1] - first, of[1] - of[0] or 1)
        if not rest and all(n - first == slope * (k - of[0]) for n, k in zip(numbers, of)):
            return slope * d + (first - slope * of[0])  # type: ignore[no-any-return]
    for (a, d), (b, e) in combinations(known.items(), 2):
        added = {n - i - j for n, i, j in zip(numbers, a, b)}
        if len(added) == 1:
            return d + e + added.pop()  # type: ignore[no-any-return]
    return None


def reached(
    call: Callable[..., Any],
    types: Sequence[TensorType],
    given: Sequence[bool],
    places: Sequence[int],
) -> list[int]:
    """The inputs, of those at places, that torch knows a path to from the outputs given."""
    with _fake.FakeTensorMode(allow_non_fake_inputs=True), torch.enable_grad():
        tensors = fakes(types, STARTS[0])
        leaves = [tensors[i].requires_grad_() for i in places]
        pairs = zip(call(*tensors), given, strict=True)
        ys = [y for y, flag in pairs if flag and y.requires_grad]
        if not ys or not leaves:
            return []
        seeds = [torch.ones_like(y) for y in ys]
        dxs = torch.autograd.grad(ys, leaves, seeds, allow_unused=True)
    return [i for i, dx in zip(places, dxs, strict=True) if dx is not None]
