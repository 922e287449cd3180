"""Functions and modules of PyTorch as ops."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ...base.errors import DTypeError, ExecutionError, GradientError, GraphError, ShapeError
from ...base.lazy import lazy_module
from ...base.solving import Axis, solved
from ...base.tree import flatten, paths, unflatten
from ...ir.build import build
from ...ir.context import bodies_around
from ...ir.graph import Graph, GraphScope, current
from ...ir.node import Node, Tensor
from ...ir.onnx import NoOnnxForm
from ...ir.op import Gradients, Types
from ...ir.types import Array, TensorType, compatible, sized, tensor_type
from ..base import NO_GRAD, Derivative, TensorLike, as_tensor, constant, wants
from ..python_function import PyFunction, promised_type
from ..random.keys import key_of
from ..sources import variable
from .torch_arrays import array_of, check_tensor, need_torch, tensor_of, torch, type_of

__all__ = ["from_torch"]

torch_trace: Any = lazy_module("graphgrad.interop.torch_trace")

Call = Callable[..., Any]
"""A function of flat tensors of torch that returns a flat sequence of them."""

Pull = tuple[tuple[bool, ...], tuple[int, ...]]
"""Which outputs have a gradient, and of which inputs it is asked."""

_drawing = threading.Lock()


class TorchCall(PyFunction, interned=False):
    """What a function of PyTorch makes of tensors, or a gradient of that, by torch.autograd.

    Gradient: that of torch.autograd.

    fn       takes tensors of torch, in the structure of `tree`, and returns such
    in_types, out_types  what it takes and gives; names are lengths not yet known
    tree     the structure of its arguments, with their places as leaves
    names    the parameters of fn, a module, which are the inputs behind the arguments
    modes    whether fn, and each module in it, was in training mode
    written  the places of inputs into which fn writes: it is given copies
    maps     for each batch around it, which inputs have the axis of that batch, in front
    pulls    for each order of gradient, from the first on, which outputs' gradients are given, and
             the places of the inputs whose gradients are asked for
    keyed    it draws random numbers: the last input is their key
    watch    it was not traced: it is watched in each run, and given copies

    The inputs of a gradient are those of what is differentiated, and then the gradients of outputs.
    It is computed from the inputs: torch runs forward and backward.
    """

    fn: Callable[..., Any]
    out_types: tuple[TensorType, ...]
    in_types: tuple[TensorType, ...] = ()
    tree: Any = ()
    names: tuple[str, ...] = ()
    modes: tuple[bool, ...] = ()
    written: tuple[int, ...] = ()
    maps: tuple[tuple[bool, ...], ...] = ()
    pulls: tuple[Pull, ...] = ()
    keyed: bool = False
    watch: bool = False
    rule: None = None
    pure = True
    derivative = Derivative(sparse=True)
    opened_by = "gg.interop.open_torch"

    @property
    def linear(self) -> tuple[int, ...]:  # type: ignore[override]
        """A gradient is linear in the gradients it is given."""
        if not self.pulls:
            return ()
        end = len(self.in_types) - self.keyed
        return tuple(range(end - sum(self.pulls[-1][0]), end))

    @property
    def label(self) -> str:
        """The function's name and where it was defined."""
        if isinstance(self.fn, FunctionType):
            return super().label
        return repr(getattr(self.fn, "__name__", type(self.fn).__name__))

    def infer(self, *types: TensorType) -> Types:
        axes: list[Axis] = []
        for place, (promised, given) in enumerate(zip(self.in_types, types, strict=True)):
            if promised.dtype != given.dtype or not compatible(promised.shape, given.shape):
                raise ShapeError(
                    f"{self!r} was traced for {promised!r} as input {place}, and got {given!r}"
                )
            axes += [(d, n, f"in input {place}") for d, n in zip(promised.shape, given.shape)]
        sizes = solved(axes)
        return tuple([tensor_type(sized(t.shape, sizes), t.dtype) for t in self.out_types])

    def kernel(self, xp: Any, *arrays: Any) -> Any:
        need_torch(f"the function {self.label}")
        if self.modes != modes_of(self.fn):
            raise ExecutionError(
                f"{self.label} was added to the graph in "
                f"{'training' if self.modes[0] else 'evaluation'} mode, but it, or a part of it, "
                "is in another mode now: call .train() or .eval() before from_torch"
            )
        *tensors, key = [tensor_of(np.asarray(a)) for a in arrays] + [None] * (not self.keyed)
        try:
            with torch.no_grad(), drawing_from(key), self._watched(tensors):
                made = self.call(*tensors)
            outputs = [self.result(*pair) for pair in zip(made, self.out_types, strict=True)]
        except Exception as error:
            error.add_note(f"in the torch function {self.label}")
            raise
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def to_onnx(self, to: Any, *xs: Any) -> Any:
        raise NoOnnxForm(f"{self.type} has no form in ONNX: it calls a function of PyTorch")

    @contextmanager
    def _watched(self, tensors: Sequence[Any]) -> Iterator[None]:
        """Refuse what no trace has excluded, of what was not traced."""
        if not self.watch:
            yield
            return
        with torch_trace.Watch(tensors) as seen:
            yield
        if seen.random:
            raise ExecutionError(
                f"{self.label} draws random numbers, which its gradient could not repeat: pass "
                "them in as an input, or leave out out_types, so that it is traced"
            )
        refuse(self.label, seen.foreign, seen.captured)

    @property
    def call(self) -> Call:
        """The function of tensors of torch."""
        call: Call = partial(_called, self)
        for flags in self.maps:
            dims = tuple([0 if flag else None for flag in flags])
            call = torch.func.vmap(call, in_dims=dims, randomness="error")
        for given, asked in self.pulls:
            call = partial(_pulled, call, given, asked)
        return call

    def result(self, made: Any, promised: TensorType) -> Array:
        """An array of its own, of the promised type, of what torch made."""
        check_tensor(made, f"what {self.label} returns")
        actual = type_of(made)
        if actual.dtype != promised.dtype or not compatible(promised.shape, actual.shape):
            raise ExecutionError(f"{self.label} returned {actual!r}, but {promised!r} is promised")
        return np.array(array_of(made))

    def vjp(self, node: Node, *dys: Any) -> Gradients:
        need_torch(f"the gradient of {self.label}")
        count = len(node.inputs) - self.keyed
        flags = [t.differentiable for t in self.out_types]
        given = tuple([dy is not None and flag for dy, flag in zip(dys, flags, strict=True)])
        asked = [i for i in self._reached(count, given) if wants(node.inputs[i])]
        dxs: list[Any] = [NO_GRAD] * len(node.inputs)
        if not asked:
            return dxs
        op = self._gradient(count, given, asked)
        seeds = [dy for dy, flag in zip(dys, given, strict=True) if flag]
        read = (*node.inputs[:count], *seeds, *node.inputs[count:])
        for i, dx in zip(asked, build(op, read).outputs, strict=True):
            dxs[i] = dx
        return dxs

    def _gradient(self, count: int, given: tuple[bool, ...], asked: Sequence[int]) -> TorchCall:
        """The gradient of inputs, of which there are so many, given those of outputs."""
        types = self.in_types
        seeds = [t for t, flag in zip(self.out_types, given, strict=True) if flag]
        return self.replace(
            in_types=(*types[:count], *seeds, *types[count:]),
            out_types=tuple([types[i] for i in asked]),
            pulls=(*self.pulls, (given, tuple(asked))),
        )

    def _reached(self, count: int, given: tuple[bool, ...]) -> Sequence[int]:
        """The inputs to which torch has a gradient flow."""
        types = self.in_types[:count]
        places = [i for i, t in enumerate(types) if t.differentiable]
        if self.watch or not any(given):
            return places if any(given) else []
        reached: Sequence[int] = torch_trace.reached(self.call, types, given, places)
        return reached

    def batch(self, batch: Any) -> Any:
        """By torch.func.vmap, where that can; a gradient is that of the batch, of every input."""
        if self.keyed or self.watch:
            return None
        inputs = batch.every() if self.pulls else batch.inputs
        flags = (True,) * len(inputs) if self.pulls else batch.flags
        count = next(t.shape[0] for t, flag in zip(inputs, flags) if flag)
        plain = len(inputs) - sum(sum(given) for given, _ in self.pulls)
        op = self.replace(
            in_types=tuple([t.type for t in inputs]),
            out_types=tuple([tensor_type((count, *t.shape), t.dtype) for t in self.out_types]),
            maps=(*self.maps, flags[:plain]),
        )
        return batch.build(op, *inputs) if op.can_be_traced() else None

    def can_be_traced(self) -> bool:
        """Whether torch can do what it says."""
        try:
            made = torch_trace.watched(self.call, self.in_types).made
        except Exception:  # of torch, which says in many ways what it cannot batch
            return False
        return len(made) == len(self.out_types)

    def __repr__(self) -> str:
        order = f", gradient of order {len(self.pulls)}" if self.pulls else ""
        return f"TorchCall({self.label}{order})"


def _called(op: TorchCall, *tensors: Any) -> tuple[Any, ...]:
    """The function itself, of flat tensors."""
    every = range(len(tensors)) if op.watch else op.written
    given = [t.clone() if i in every else t for i, t in enumerate(tensors)]
    return tuple(flatten(_returned(op, given)))


def _returned(op: TorchCall, tensors: Sequence[Any]) -> Any:
    """What the function returns, in its own structure."""
    count = len(tensors) - len(op.names)
    args = unflatten(op.tree, tensors[:count])
    if not op.names:
        return op.fn(*args)
    named = dict(zip(op.names, tensors[count:], strict=True))
    return torch.func.functional_call(op.fn, named, tuple(args))


def _pulled(call: Call, given: tuple[bool, ...], asked: Sequence[int], *tensors: Any) -> list[Any]:
    """Gradients of the inputs that are asked for, from those of outputs, which come last.

    torch gives the conjugate of what a graph means by a gradient.
    """
    again = torch.is_grad_enabled()  # by a gradient of this one
    count = len(tensors) - sum(given)
    with torch.enable_grad():
        xs = list(tensors[:count])
        for i in asked:
            if not xs[i].requires_grad:
                xs[i] = xs[i].detach().requires_grad_()
        ys = [y for y, flag in zip(call(*xs), given, strict=True) if flag]
        pairs = [(y, dy) for y, dy in zip(ys, tensors[count:], strict=True) if y.requires_grad]
        leaves = [xs[i] for i in asked]
        dxs = [None] * len(asked)
        if pairs:
            dys = [dy.conj() if dy.is_complex() else dy for _, dy in pairs]
            dxs = torch.autograd.grad(
                [y for y, _ in pairs], leaves, dys, create_graph=again, allow_unused=True
            )
        grads = [torch.zeros_like(x) if d is None else d for x, d in zip(leaves, dxs, strict=True)]
        return [d.conj() if d.is_complex() else d for d in grads]


@contextmanager
def drawing_from(key: Any) -> Iterator[None]:
    """Have torch draw the numbers of a key meanwhile, which nobody else's draws depend on."""
    if key is None:
        yield
        return
    generator = torch.default_generator
    with _drawing:
        before = generator.get_state()
        generator.manual_seed(int(key))
        try:
            yield
        finally:
            generator.set_state(before)


def modes_of(fn: Any) -> tuple[bool, ...]:
    """Whether a module, and each in it, is in training mode; () for a function."""
    if not isinstance(fn, torch.nn.Module):
        return ()
    return tuple([module.training for module in fn.modules()])


def refuse(label: str, foreign: Sequence[Any], captured: Sequence[Any]) -> None:
    """GraphError for what a graph would not know of, GradientError for gradients that got lost."""
    if foreign:
        raise GraphError(
            f"{label} writes into tensors that are not among its inputs, of the shapes "
            f"{', '.join(map(str, foreign))}, as batch normalisation in training mode does with "
            "its statistics. A graph would lose that: call .eval() first, or have the function "
            "return the new values."
        )
    if captured:
        shapes = dict.fromkeys(tuple(t.shape) for t in captured)
        raise GradientError(
            f"{label} reads tensors that require a gradient and are not among its inputs, of the "
            f"shapes {', '.join(map(str, shapes))}: their gradient would be lost. "
            "Give the module itself, or these tensors as inputs; or .detach() them, or "
            'say parameters="constants".'
        )


# --- from a function to a node ----------------------------------------------------------------


def from_torch(
    fn: Callable[..., Any],
    *tensors: Any,
    parameters: Any = "variables",
    out_types: Sequence[Any] | None = None,
    name: str | None = None,
) -> Any:
    """Call a function or module of PyTorch in a graph; its gradients are those of torch.autograd.

    It is one node, which is run on every backend by calling torch, and which rules can be put on or
    around. Each order of gradient is such a node again, which runs torch forward and backward. The
    parameters of a module are inputs of the node: without a say, variables of the graph, with the
    values that they have now, which are trained as others are; the module keeps its own. A module
    that is called twice in a graph has one set of them. To mark, save or export what is inside,
    take `open_torch`, which builds each operator as a node.

    The function is traced on tensors without values, so that types are known, and what it draws and
    writes. What it draws follows the graph's own random numbers: the same in forward and backward,
    new in each run, and torch's generator stays as it is. It may write into its inputs: it is given
    copies of those. It may have no other effect, for it runs as often as is of use.

    Parameters:
        fn: takes tensors of torch, and returns one, or any nesting of list, tuple and dict of them.
            A module keeps the mode, training or evaluation, that it is in now.
        *tensors: the arguments: tensors, or what becomes constants, or any nesting of list, tuple
            and dict of them.
        parameters: of a module: "variables"; "constants", which are not trained; or {name: tensor}
            with a tensor for each. Of a function "constants" allows it to read tensors besides that
            require a gradient, which then get none.
        out_types: a (shape, dtype) for each output, for a function that cannot be traced, since
            what it does depends on values. It is watched in each run instead.
        name: the node's name, and the scope of the variables; else that is the module's class.

    Returns: what fn returns, with tensors of the graph in it; for out_types a tensor, or a tuple.

    Raises: GraphGradError without PyTorch; GradientError where fn reads tensors besides that
    require a gradient; GraphError where it writes into tensors besides; DTypeError where it returns
    what is not a tensor; what fn raises in the trace, with a note. A run raises ExecutionError for
    other types than were traced, or another mode.

    Gradient: that of torch.autograd; None for inputs that it knows no path to.

    >>> import torch
    >>> x = gg.placeholder((2,))
    >>> y = gg.interop.from_torch(torch.sin, x)
    >>> gg.evaluate(gg.gradients(y, x), {x: [0.0, np.pi]})
    array([ 1., -1.])
    """
    need_torch("from_torch")
    if not callable(fn):
        raise TypeError(f"from_torch() takes a function or module of torch, got {fn!r:.80}")
    args = [as_tensor(x) for x in flatten(tensors)]
    tree = unflatten(tensors, range(len(args)))
    named = _parameters(fn, parameters, name)
    inputs = [*args, *named.values()]
    types = tuple([t.type for t in inputs])
    given = tuple([promised_type(t) for t in out_types or ()])
    op = TorchCall(
        fn,
        given,
        in_types=types,
        tree=tree,
        names=tuple(named),
        modes=modes_of(fn),
        watch=out_types is not None,
    )
    if out_types is not None:
        made = build(op, tuple(inputs), name).outputs
        return made[0] if len(made) == 1 else made
    op, returned = _traced(op, parameters == "constants")
    if op.keyed:
        key = key_of(None, *inputs)
        op, inputs = op.replace(in_types=(*types, key.type)), [*inputs, key]
    return unflatten(returned, build(op, tuple(inputs), name).outputs)


def _traced(op: TorchCall, constants: bool) -> tuple[TorchCall, Any]:
    """The op with what a trace says of it, and the structure of what it returns."""
    static = all(t.static for t in op.in_types)
    trees: list[Any] = []

    def noting(*tensors: Any) -> Any:
        trees.append(_returned(op, tensors))
        return flatten(trees[-1])

    try:
        seen = [torch_trace.watched(noting, op.in_types, i) for i in range(1 if static else 3)]
    except Exception as error:
        types = ", ".join(map(repr, op.in_types))
        error.add_note(
            f"while from_torch() traced {op.label} on tensors without values, of the types {types}"
            + ("" if static else ", with primes for unknown lengths: give equal ones one name")
            + ".\nIf its operations depend on values, pass out_types=[(shape, dtype), ...]."
        )
        raise
    first = seen[0]
    refuse(op.label, first.foreign, () if constants else first.captured)
    _check_returned(op, trees)
    traces = [[type_of(t) for t in each.made] for each in seen]
    out_types = torch_trace.seen_types(op.in_types, traces)
    return op.replace(out_types=out_types, written=first.written, keyed=first.random), trees[0]


def _check_returned(op: TorchCall, trees: Sequence[Any]) -> None:
    """Raise unless the traces returned tensors of torch, and as many."""
    leaves = flatten(trees[0])
    for leaf, path in zip(leaves, paths(trees[0], "result"), strict=True):
        if not isinstance(leaf, torch.Tensor):
            raise DTypeError(
                f"{op.label} returned {type(leaf).__name__} {leaf!r:.80} as {path}; it is to "
                "return tensors of torch, in lists, tuples and dicts"
            )
    if not leaves:
        raise ShapeError(f"{op.label} returned no tensor")
    if len({repr(unflatten(t, range(len(flatten(t))))) for t in trees}) > 1:
        raise ShapeError(f"the output of {op.label} depends on an unknown length: make it known")


def _parameters(fn: Any, asked: Any, name: str | None) -> dict[str, Tensor]:
    """The tensors that stand for the parameters of a module, by name."""
    known = asked in ("variables", "constants") if isinstance(asked, str) else False
    if not (known or isinstance(asked, Mapping)):
        raise ValueError(
            f'parameters is "variables", "constants" or {{name: tensor}}, got {asked!r:.80}'
        )
    if not isinstance(fn, torch.nn.Module):
        if not isinstance(asked, str):
            raise TypeError(f"parameters= are for a module, and {fn!r:.80} is none")
        return {}
    own = dict(fn.named_parameters())
    for at, parameter in own.items():
        check_tensor(parameter, f"the parameter {at!r}")
    if isinstance(asked, Mapping):
        return _given(own, asked)
    if asked == "constants":
        return {at: constant(np.array(array_of(p))) for at, p in own.items()}
    return module_variables(fn, own, name or type(fn).__name__)


def _given(own: Mapping[str, Any], asked: Mapping[str, TensorLike]) -> dict[str, Tensor]:
    """Those of the user, which have to be all."""
    missing, unknown = own.keys() - asked.keys(), asked.keys() - own.keys()
    if missing or unknown:
        raise GraphError(
            f"parameters= has no tensor for {sorted(missing)}, and has {sorted(unknown)}, which "
            "the module does not have"
        )
    tensors = {at: as_tensor(asked[at]) for at in own}
    for at, t in tensors.items():
        wanted = type_of(own[at])
        if t.dtype != wanted.dtype or not compatible(t.shape, wanted.shape):
            raise ShapeError(f"the parameter {at!r} is {wanted!r}, and got {t!r}")
    return tensors


_named: WeakKeyDictionary[Any, WeakKeyDictionary[Graph, dict[str, str]]] = WeakKeyDictionary()
"""module -> graph -> parameter -> the name of its variable."""


def module_variables(module: Any, own: Mapping[str, Any], scope: str) -> dict[str, Tensor]:
    """The variables of a module in the graph, made when it is first called there.

    own: its parameters and buffers by name; those that require no gradient are not trainable.
    """
    *_, root = bodies_around(current().graph)
    known = _named.setdefault(module, WeakKeyDictionary()).setdefault(root, {})
    with GraphScope(root):
        for at, parameter in own.items():
            if at not in known:
                array, trained = np.array(array_of(parameter)), parameter.requires_grad
                name = f"{scope}/{at}" if scope else at
                known[at] = variable(array, name=name, trainable=trained).name
        return {at: root.tensor(known[at]) for at in own}
