"""A compiled function as a module of torch, differentiated by its own rules alone."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from itertools import count
from typing import Any

import numpy as np

from ..base.errors import DTypeError, ExecutionError, ShapeError, StateError
from ..base.kinds import can_cast
from ..base.length import Length
from ..base.solving import Axis, solved
from ..base.tree import tree_map
from ..compiled import CompiledFunction
from ..execute.run.feeds import as_array
from ..ir.node import Tensor
from ..ir.types import compatible, tensor_type
from ..ops.foreign.torch_arrays import check_tensor, dtype_of, tensor_of, torch_dtype
from .torch_orders import TorchOrder

__all__ = ["GraphModule", "OrderFunction", "hide"]

torch: Any = import_module("torch")


class OrderFunction(torch.autograd.Function):  # type: ignore[misc]
    """apply(order, number of the run, *tensors): an order, whose gradient is the next one.

    torch gives the conjugate of what a graph means by a gradient, on the way there and back.
    """

    @staticmethod
    def forward(order: TorchOrder, number: Any, *tensors: Any) -> tuple[Any, ...]:
        """The outputs of the order."""
        return values(order, number, tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Note what the gradients need."""
        ctx.order, ctx.number, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        flags = zip(output, ctx.order.differentiable, strict=True)
        ctx.mark_non_differentiable(*[y for y, flag in flags if not flag])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *dys: Any) -> tuple[Any, ...]:
        """The next order, of what is given and asked for."""
        flags = ctx.order.differentiable
        of = tuple([i for i, dy in enumerate(dys) if dy is not None and flags[i]])
        by = tuple([i for i, asked in enumerate(ctx.needs_input_grad[2:]) if asked])
        dxs: list[Any] = [None] * (len(ctx.needs_input_grad) - 2)
        order, reached = ctx.order.backward(of, by)
        if order is not None:
            given = [_conjugate(dys[i]) for i in of]
            made = OrderFunction.apply(order, ctx.number, *ctx.saved_tensors, *given)
            for i, dx in zip(reached, made, strict=True):
                dxs[i] = _conjugate(dx)
        return None, None, *dxs

    @staticmethod
    def jvp(ctx: Any, _order: Any, _number: Any, *dxs: Any) -> tuple[Any, ...]:
        """How the outputs move: the transpose of the rules, or an error that names one."""
        flags = ctx.order.differentiable
        by = tuple([i for i, dx in enumerate(dxs) if dx is not None])
        order = ctx.order.forward(by)
        given = [dxs[i] for i in by]
        made = iter(OrderFunction.apply(order, ctx.number, *ctx.saved_tensors, *given))
        return tuple([next(made) if flag else None for flag in flags])

    @staticmethod
    def vmap(info: Any, places: Any, order: TorchOrder, number: Any, *tensors: Any) -> Any:
        """The order of a batch, in which rules work for each example."""
        axes = places[2:]
        flags = tuple([axis is not None for axis in axes])
        moved = [
            t if axis is None else t.movedim(axis, 0) for t, axis in zip(tensors, axes, strict=True)
        ]
        made = OrderFunction.apply(order.batched(flags), number, *moved)
        return made, (0,) * len(made)


OrderFunction.forward.__signature__ = signature(OrderFunction.forward)  # type: ignore[attr-defined]
"""Else torch works it out in each call."""


def _conjugate(t: Any) -> Any:
    return t.conj() if t.is_complex() else t


# --- in programs of torch -----------------------------------------------------------------------

_orders: dict[int, TorchOrder] = {}
"""Orders by number, which is how a program of torch knows them as long as this process lives."""


def number_of(order: TorchOrder) -> int:
    """The number of an order."""
    number = id(order)
    _orders[number] = order
    return number


def values(order: TorchOrder, number: Any, tensors: Any) -> tuple[Any, ...]:
    """The outputs of an order; where torch writes down what is done, as one step."""
    if not torch._C._len_torch_dispatch_stack():
        return order.run(number, tensors)
    with torch._C._AutoDispatchBelowAutograd():
        return tuple(step(number_of(order), number, list(tensors)))


def _run(order: int, number: Any, tensors: Any) -> list[Any]:
    torch_order = _orders.get(order)
    if torch_order is None:
        raise ExecutionError(
            "a program of torch calls a graphgrad function of another process: make the program "
            "here"
        )
    return list(torch_order.run(number, tensors))


def _differentiable(order: int, number: Any, tensors: Any) -> list[Any]:
    if torch._C._are_functorch_transforms_active():
        raise ExecutionError(
            "torch.func does not transform a graphgrad function inside a program of "
            "torch.compile or torch.export: transform the module itself, and do not compile the "
            "transform"
        )
    return list(OrderFunction.apply(_orders[order], number, *tensors))


def _fake(order: int, number: Any, tensors: Any) -> list[Any]:
    """What is known of its outputs: named lengths are those of the inputs."""
    graph_order = _orders[order].order
    axes: list[Axis] = []
    for t, x in zip(graph_order.inputs, tensors, strict=True):
        pairs = list(zip(t.shape, x.shape, strict=False))
        if len(t.shape) != x.ndim or any(isinstance(d, int) and d != n for d, n in pairs):
            raise ShapeError(f"{t.node.name!r} ({t.type!r}) got a tensor of shape {x.shape}")
        axes += [(d, n, f"in {t.node.name!r}") for d, n in pairs]
    sizes = solved(axes)

    def length(d: Any) -> Any:
        if isinstance(d, Length) and d.names <= sizes.keys():
            return d.at(sizes)
        return d if isinstance(d, int) else torch.library.get_ctx().new_dynamic_size()

    device = tensors[0].device if tensors else "cpu"
    return [
        torch.empty([length(d) for d in y.shape], dtype=torch_dtype(y.dtype), device=device)
        for y in graph_order.outputs
    ]


_library: Any = torch.library.Library("graphgrad", "DEF")
_library.define(
    "order(int order, Tensor? number, Tensor[] tensors) -> Tensor[]",
    tags=(torch.Tag.pt2_compliant_tag,),
)
_library.impl("order", _run, "CompositeExplicitAutograd")
_library.impl("order", _differentiable, "Autograd")
torch.library.register_fake("graphgrad::order", _fake, lib=_library)
step: Any = torch.ops.graphgrad.order.default
"""An order, in what torch.compile, torch.export and make_fx make of a program."""


def hide(*functions: Any) -> None:
    """Have torch.compile not look into functions that run beside what it compiles."""
    frames = torch._C._dynamo.eval_frame
    if not hasattr(frames, "set_code_exec_strategy"):  # then torch.compile may stop with an error
        return
    strategy = frames._FrameExecStrategy(frames._FrameAction.SKIP, frames._FrameAction.SKIP)
    for function in functions:
        frames.set_code_exec_strategy(function.__code__, strategy)


hide(TorchOrder.run, TorchOrder.backward, TorchOrder.forward, TorchOrder.batched)


# --- the module ---------------------------------------------------------------------------------


class GraphModule(torch.nn.Module):  # type: ignore[misc]
    """What `to_torch` returns: call it with tensors as the compiled function with arrays.

    Its parameters are the trainable variables that the function reads, its buffers the other ones,
    under their names; they began as copies of the values that the variables had.
    """

    def __init__(self, f: CompiledFunction, gradients: int) -> None:
        super().__init__()
        if f._access.written:
            raise StateError(
                f"{f!r} writes {', '.join(v.name for v in f._access.written)}: to_torch() takes a "
                "function that only reads. Leave updates to an optimiser of torch, or return the "
                "new values"
            )
        self._order = TorchOrder.first(f, gradients, "to_torch")
        places = count()
        self._tree = tree_map(lambda t: None if t is None else next(places), f.outputs)
        self._own = [self._registered(v) for v in f._access.read]
        self._counted = f._access.counted
        self._handle = number_of(self._order)
        self._names = [t.node.name for t in f.inputs]
        self._dtypes = [torch_dtype(t.dtype) for t in self._order.order.inputs]

    @property
    def _f(self) -> CompiledFunction:
        return self._order.order.family.f

    def _registered(self, variable: Any) -> str:
        """The name under which torch has a variable."""
        (value,) = self._f._state.read([variable])
        name: str = variable.name.replace(".", "_")
        while hasattr(self, name):
            name += "_"
        tensor = tensor_of(np.array(value))
        if variable.op.trainable:
            self.register_parameter(name, torch.nn.Parameter(tensor))
        else:
            self.register_buffer(name, tensor)
        return name

    def _apply(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        """What `.to()`, `.double()` and their kin call. The graph computes in its own dtypes, so a
        parameter may be cast to one that these hold, and to no wider one."""
        computed = self._dtypes[len(self._names) :]
        for name, dtype in zip(self._own, computed, strict=True):
            old = getattr(self, name)
            new = fn(torch.empty(0, dtype=old.dtype, device=old.device)).dtype
            if torch.promote_types(new, dtype) != dtype:
                raise DTypeError(
                    f"{self._f!r} computes with {name!r} in {dtype}, but the module is being cast "
                    f"to {new}, which would not make its results more precise. Build the graph "
                    "with that dtype, or cast the inputs and outputs of the module."
                )
        return super()._apply(fn, *args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs, in the structure of the function's, for tensors in order or by name."""
        if torch.compiler.is_dynamo_compiling():
            return self._in_a_program(args, kwargs)
        if torch.jit.is_tracing():
            raise ExecutionError(
                "torch.jit.trace would record the values of a graphgrad function, or lose its "
                "gradient: use torch.export or torch.compile"
            )
        f = self._f
        given = f._request.feeds.placed(args, kwargs)
        tensors = [_fitted(t, x) for t, x in zip(f.inputs, given, strict=True)]
        if all(type(n) is int for x in tensors for n in x.shape):
            f._request.feeds.check_lengths([x.shape for x in tensors])
            f._request.feeds.check_together(
                [tensor_type(tuple(x.shape), dtype_of(x)) for x in tensors]
            )
        variables = [v.outputs[0] for v in f._access.read]
        tensors += [_fitted(t, getattr(self, n)) for t, n in zip(variables, self._own, strict=True)]
        made = OrderFunction.apply(self._order, self._number(), *tensors)
        return self._packed(made)

    def _packed(self, made: Any) -> Any:
        return tree_map(lambda place: None if place is None else made[place], self._tree)

    def _number(self) -> Any:
        """The number of the run that random numbers are drawn for."""
        return torch.randint(1 << 62, ()) if self._counted else None

    def _in_a_program(self, args: Any, kwargs: Any) -> Any:
        """As torch.compile reads it: plain steps alone."""
        given = list(args) + [kwargs[name] for name in self._names[len(args) :]]
        given += [getattr(self, name) for name in self._own]
        tensors = [torch.as_tensor(x).to(d) for x, d in zip(given, self._dtypes, strict=True)]
        return self._packed(step(self._handle, self._number(), tensors))

    def extra_repr(self) -> str:
        """What is shown in print(module)."""
        return self._f._feeds.signature


def _fitted(t: Tensor, value: Any) -> Any:
    """A tensor of torch of the dtype that an input takes, by the casts of compiled functions."""
    who = f"the input {t.node.name!r}"
    if isinstance(value, torch.fx.Proxy):
        raise DTypeError(
            f"{who} is a Proxy of torch.fx.symbolic_trace, which does not look inside modules: "
            "use torch.export or torch.compile"
        )
    if not isinstance(value, torch.Tensor):
        return tensor_of(np.array(as_array(t, value)))
    in_transform = torch._C._functorch.is_functorch_wrapped_tensor(value)
    if not (in_transform or torch._C._len_torch_dispatch_stack()):
        check_tensor(value, who)
    if not compatible(t.shape, value.shape):
        raise ShapeError(f"{who} is {t.type!r}, and got a tensor of shape {tuple(value.shape)}")
    dtype = dtype_of(value)
    if dtype == t.dtype:
        return value
    if not can_cast(dtype, t.dtype, "same_kind"):
        raise DTypeError(f"{who} is {t.type!r}, and got {value.dtype}: cast it with .to(...)")
    return value.to(torch_dtype(t.dtype))
