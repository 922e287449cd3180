"""The way back: a module of torch, opened, marked and compiled, as a module with its parameters."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import copy_context
from copy import deepcopy
from functools import update_wrapper, wraps
from importlib import import_module
from types import new_class
from typing import Any, NamedTuple

import numpy as np

from ...base.errors import ExecutionError, StateError
from ...compiled import compile
from ...ir.graph import Graph
from ...ir.node import Tensor
from ...ir.types import TensorType
from ...ops.foreign.torch_arrays import check_tensor, dtype_of, tensor_of, torch_dtype, type_of
from ...ops.sources import placeholder
from ..reports import Tally
from ..signatures import Fixed, names_of_leaves
from ..torch_modules import OrderFunction, hide
from ..torch_orders import TorchOrder
from .functions import has_gradient
from .opening import built, module_of, opening_of, variables
from .tracing import INSTEAD, note_unknown

__all__ = ["retrofitted"]

torch: Any = import_module("torch")
_pytree: Any = import_module("torch.utils._pytree")
_swapped: Any = import_module("torch.nn.utils.stateless")._reparametrize_module
_WRAPPED: Any = torch._C._functorch
_saving_hooks: Any = torch._C._autograd._top_saved_tensors_default_hooks


class TorchTaken(NamedTuple):
    """A call, taken apart.

    leaves     of the arguments and those by name
    structure  of them
    places     of the tensors among them
    tensors    these
    names      of these, by their paths
    own        parameters and buffers of the module, by name
    parts      the modules in it, which of them are in training, and their hooks
    """

    leaves: list[Any]
    structure: Any
    places: list[int]
    tensors: list[Any]
    names: list[str]
    own: dict[str, Any]
    parts: tuple[Any, ...]

    @property
    def types(self) -> list[TensorType]:
        """Of the tensors."""
        return [type_of(t) for t in self.tensors]

    @property
    def signature(self) -> Any:
        """What it is opened for."""
        places = set(self.places)
        fixed = [Fixed(x) for i, x in enumerate(self.leaves) if i not in places]
        types = [(t.shape, t.dtype) for t in self.tensors]
        first: dict[int, str] = {}
        own = [
            (first.setdefault(id(t), name), t.shape, t.dtype, t.requires_grad)
            for name, t in self.own.items()
        ]
        cast = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu")
        called = self.structure, tuple(self.places), tuple(types), tuple(fixed)
        return *called, tuple(own), self.parts, cast


class TorchRetrofit(NamedTuple):
    """What was opened for a signature, and compiled.

    order    of what the call returns and then what it writes
    read     the names of the parameters and buffers that it takes after the tensors
    written  the names of the buffers that it writes
    counted  whether it draws random numbers
    lay_out  what the call returns, of its tensors
    """

    order: TorchOrder
    read: list[str]
    written: list[str]
    counted: bool
    lay_out: Callable[[Sequence[Any]], Any]


class TorchRetrofits:
    """What `mark` marks of a module or function, opened once for each signature."""

    def __init__(self, name: str, mark: Callable[[Graph], object], gradients: int) -> None:
        self.name, self.mark, self.gradients = name, mark, gradients
        self._made: dict[Any, TorchRetrofit] = {}
        self._lock = threading.RLock()

    def __deepcopy__(self, memo: Any) -> TorchRetrofits:
        return self  # it knows parameters by name alone

    def call(self, fn: Callable[..., Any], module: Any, args: Any, kwargs: Any) -> Any:
        """What fn returns, with the gradients of the rules."""
        taken = _taken(fn, module, args, kwargs)
        made = self.made(fn, module, taken)
        tensors = [*taken.tensors, *[taken.own[name] for name in made.read]]
        for i, name in enumerate(made.read, len(taken.tensors)):
            if name in made.written:
                tensors[i] = tensors[i].clone()  # which backward reads
        number = torch.randint(1 << 62, ()) if made.counted else None
        results = OrderFunction.apply(made.order, number, *tensors)
        count = len(results) - len(made.written)
        with torch.no_grad():
            for name, value in zip(made.written, results[count:], strict=True):
                taken.own[name].copy_(value)
        return made.lay_out(results[:count])

    def open(self, fn: Callable[..., Any], module: Any, examples: Any) -> None:
        """Open it for arguments like these."""
        self.made(fn, module, _taken(fn, module, examples, {}))

    def made(self, fn: Callable[..., Any], module: Any, taken: TorchTaken) -> TorchRetrofit:
        """What was opened for a call."""
        key = taken.signature
        with self._lock:
            if key not in self._made:
                self._made[key] = _outside(lambda: self._opened(fn, module, taken), module, taken)
            return self._made[key]

    def _opened(self, fn: Callable[..., Any], module: Any, taken: TorchTaken) -> TorchRetrofit:
        def flat(*tensors: Any) -> Any:
            leaves = list(taken.leaves)
            for i, t in zip(taken.places, tensors, strict=True):
                leaves[i] = t
            _, args, kwargs = _pytree.tree_unflatten(leaves, taken.structure)
            return fn(*args, **kwargs)

        update_wrapper(flat, fn)
        with Graph(self.name) as graph:
            opening = opening_of(flat, list(map(_sample, taken.types)), owner=module)
            named, tally = variables(opening), Tally()
            note_unknown(opening.program, True, tally)
            inputs = [
                placeholder(t.shape, t.dtype, name=name)
                for t, name in zip(taken.types, taken.names, strict=True)
            ]
            result, new = built(opening, named, inputs, True, tally=tally)
            tally.check("retrofit()", INSTEAD)
            leaves, structure = _pytree.tree_flatten(result)
            places = [i for i, y in enumerate(leaves) if isinstance(y, Tensor)]
            self.mark(graph)
            f = compile(inputs, [*[leaves[i] for i in places], *new.values()])
        names = {named[at].node: name for at, name in opening.names.items()}
        read = f._access.read
        if f._access.written or any(t.node not in names for t in graph.variables):
            raise StateError(
                f"mark(graph) of {self.name} adds or writes variables, which a torch module "
                "cannot store: let it read constants, or use open_torch()"
            )

        def lay_out(tensors: Sequence[Any]) -> Any:
            made = list(leaves)
            for i, t in zip(places, tensors, strict=True):
                made[i] = t
            return _pytree.tree_unflatten(made, structure)

        return TorchRetrofit(
            TorchOrder.first(f, self.gradients, "retrofit"),
            [names[node] for node in read],
            [opening.names[at] for at in new],
            f._access.counted,
            lay_out,
        )


def _sample(t: TensorType) -> Any:
    return torch.empty(t.shape, dtype=torch_dtype(t.dtype), device="meta")


def _taken(fn: Callable[..., Any], module: Any, args: Any, kwargs: Any) -> TorchTaken:
    if torch.jit.is_tracing():
        raise ExecutionError(
            "torch.jit.trace would record the values of a retrofitted module, or lose its gradient"
        )
    given, structure = _pytree.tree_flatten_with_path(((), tuple(args), kwargs))
    leaves = [leaf for _, leaf in given]
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    names = names_of_leaves(fn, len(args), [given[i][0] for i in places])
    for leaf in leaves:
        if isinstance(leaf, np.ndarray):
            raise TypeError(
                f"a module of torch that was retrofitted takes tensors, got an array of "
                f"{leaf.dtype}{list(leaf.shape)}: give torch.from_numpy(array)"
            )
    for i, name in zip(places, names, strict=True):
        if not _in_transform():
            check_tensor(leaves[i], f"the argument {name!r}")
    tensors = [leaves[i] for i in places]
    return TorchTaken(leaves, structure, places, tensors, names, _own(module), _parts(module))


def _parts(module: Any) -> tuple[Any, ...]:
    """What of a module besides parameters and buffers may change what it computes.

    Its own hooks are called around what is opened.
    """
    if module is None:
        return ()
    _, *inner = module.modules()
    hooks = [(part, *[tuple(getattr(part, kind)) for kind in _HOOKS]) for part in inner]
    return *[part.training for part in module.modules()], *hooks


_HOOKS = "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"


def _own(module: Any) -> dict[str, Any]:
    """The parameters and buffers of a module, under each of their names."""
    if module is None:
        return {}
    named = dict(module.named_parameters(remove_duplicate=False))
    return named | dict(module.named_buffers(remove_duplicate=False))


def _in_transform() -> bool:
    """Whether tensors may have no values of their own, for torch transforms or traces a program."""
    return bool(torch._C._are_functorch_transforms_active() or torch._C._len_torch_dispatch_stack())


def _outside(opened: Callable[[], Any], module: Any, taken: TorchTaken) -> Any:
    """What is opened outside of all that torch transforms and traces, which is of each thread."""
    if torch._C._len_torch_dispatch_stack():
        raise ExecutionError(
            "a retrofitted module was not opened yet for what torch.export, make_fx or "
            "open_torch() traces: call it once before, or give retrofit() an example. open_torch() "
            "takes the module itself"
        )
    parameters = {} if module is None else dict(module.named_parameters(remove_duplicate=False))
    plain = all(isinstance(t, torch.nn.Parameter) for t in parameters.values())
    plain = plain and not (_in_transform() or torch.is_inference_mode_enabled())
    if plain and _saving_hooks(True) is None:
        return opened()

    def call() -> Any:
        values = {name: _value_of(t, name in parameters) for name, t in taken.own.items()}
        with nullcontext() if module is None or plain else _swapped(module, values):
            return opened()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(copy_context().run, call).result()


def _value_of(t: Any, is_parameter: bool) -> Any:
    """The value below what torch makes of a tensor in a transform; zeros where it is none."""
    value = t
    while _WRAPPED.is_functorch_wrapped_tensor(value):
        value = _WRAPPED.get_unwrapped(value)
    if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.shape != t.shape:
        value = tensor_of(np.zeros(tuple(t.shape), dtype_of(t)))
    value = value.detach()
    return torch.nn.Parameter(value, has_gradient(value)) if is_parameter else value


class RetrofittedTorch:
    """`retrofit` of a function of tensors, or of a method of a module: called as that is."""

    def __init__(
        self, fn: Callable[..., Any], mark: Callable[[Graph], object], gradients: int
    ) -> None:
        update_wrapper(self, fn)
        self.fn, self.module = fn, module_of(fn)
        name = getattr(fn, "__name__", type(fn).__name__)
        self.retrofits = TorchRetrofits(name, mark, gradients)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What fn returns, with the gradients of the rules."""
        return self.retrofits.call(self.fn, self.module, args, kwargs)

    def open(self, *examples: Any) -> None:
        """Open it for arguments like these."""
        self.retrofits.open(self.fn, self.module, examples)


class RetrofittedModule(torch.nn.Module):  # type: ignore[misc]
    """`retrofit` of a module: one with all that the original has, but its `forward`.

    original   the module
    retrofits  what is marked of it
    """

    original: Any
    retrofits: TorchRetrofits

    @property
    def forward(self) -> Callable[..., Any]:
        """What the module returns, with the gradients of the rules."""
        original = type(self).original
        if self.__dict__ is not original.__dict__:
            raise StateError(
                f"a part of a retrofitted {self.retrofits.name} has no rules of its own: retrofit "
                "that part of the original module"
            )

        @wraps(original.forward)
        def forward(*args: Any, **kwargs: Any) -> Any:
            return self.retrofits.call(original.forward, original, args, kwargs)

        return forward

    def __deepcopy__(self, memo: Any) -> Any:
        return module_with(deepcopy(type(self).original, memo), self.retrofits)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "a retrofitted module of torch is not pickled: save its state_dict(), which the "
            "original loads too, and retrofit again"
        )


def module_with(module: Any, retrofits: TorchRetrofits) -> Any:
    """The module with another forward: the attributes of both are the same ones."""
    kind = type(module)
    said = {
        "original": module,
        "retrofits": retrofits,
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
    }
    bases = RetrofittedModule, kind
    made: Any = object.__new__(new_class(kind.__name__, bases, {}, lambda body: body.update(said)))
    object.__setattr__(made, "__dict__", module.__dict__)
    return made


def retrofitted(
    fn: Any, mark: Callable[[Graph], object], gradients: int, examples: Sequence[Any]
) -> Any:
    """What `retrofit` returns."""
    if isinstance(fn, torch.jit.ScriptModule | torch.export.ExportedProgram):
        raise TypeError(
            f"retrofit() takes the original module, which has the rules, got a {type(fn).__name__}"
        )
    if isinstance(fn, RetrofittedModule):
        raise TypeError(
            f"retrofit() got a {type(fn).__name__} that is retrofitted already: let one "
            "mark(graph) put all rules on the original module"
        )
    if not isinstance(fn, torch.nn.Module):
        function = RetrofittedTorch(fn, mark, gradients)
        if examples:
            function.open(*examples)
        return function
    retrofits = TorchRetrofits(type(fn).__name__, mark, gradients)
    if examples:
        retrofits.open(fn.forward, fn, examples)
    return module_with(fn, retrofits)


hide(TorchRetrofits.call)
