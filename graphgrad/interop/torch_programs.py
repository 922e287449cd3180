"""Modules of PyTorch, opened: what `gg.interop.open_torch` takes and returns."""

from __future__ import annotations

import sys
from typing import Any

from ..base.flags import truth
from ..base.lazy import lazy_module
from ..ops.foreign.torch_arrays import need_torch

__all__ = ["check_openable_torch", "is_of_torch", "open_torch"]

_opening: Any = lazy_module("graphgrad.interop.torch_operators.opening")
PARAMETERS = ("variables", "constants")


def open_torch(
    module: Any, *tensors: Any, parameters: str = "variables", updates: bool = False
) -> Any:
    """Build a module or function of PyTorch in the current graph, each of its operators a node.

    What `from_torch` calls as one op is open here: its nodes can be marked, overridden, drawn,
    differentiated, saved and exported like any others. The module is exported once, as
    `torch.export` does it; each operator of ATen becomes what `gg` calls it (relu, gelu, softmax,
    layer_norm, ...). A `torch.autograd.Function` becomes a region named as its class is, whose rule
    is its backward, opened in its turn: it counts at every order, and `overrides=` switches it off
    or replaces it. What is computed under `torch.no_grad`, and `detach`, has no gradient. Paths of
    modules are name scopes, and nodes carry the line of the traced program. Open lengths stay open:
    the program is that for lengths of 2 and more, as torch.export makes it.

    A module keeps the mode, training or evaluation, that it is in now. What it draws, such as
    dropout, are draws of the graph: of the distributions of torch, not its numbers. Writes into
    arguments are not seen outside.

    Parameters:
        module: a module, a function of tensors, a method of a module, or what torch.export made.
        *tensors: the arguments: tensors of the current graph, arrays, which become constants, and
            whatever else the call takes, in any nesting of list, tuple and dict.
        parameters: what parameters and buffers become: "variables" under their names in the
            state_dict ("layer1.0.conv1.weight"), shared ones once, trainable where they require a
            gradient; a module opened twice in a graph has one set. Or "constants".
        updates: whether what the module writes into its buffers, such as the statistics of batch
            normalisation in training mode, is returned too.

    Returns: what the module returns, with tensors of the graph in it; with updates a pair of that
    and {variable: new value}, as `gg.compile(updates=)` takes it.

    Raises: GraphError for operators without a form, all of them at once, with how often each occurs
    and the line of the first, and where the module writes without updates=True, or into what is
    not a buffer; GradientError for rules, hooks and writes that would be lost, and for arguments of
    torch that require a gradient; GraphGradError without PyTorch; what torch.export
    raises for what it cannot trace, with a note.

    Gradient: of the nodes; of what is a torch.autograd.Function its backward.

    Source: tracing to ATen [Reed et al. 2022, "torch.fx: practical program capture and
    transformation for deep learning in Python"].

    >>> import torch
    >>> x = gg.constant([-1.0, 0.5])
    >>> y = gg.interop.open_torch(lambda a: torch.relu(a) * 3.0, x)
    >>> [node.type for node in y.graph.nodes]
    ['Constant', 'Relu', 'Constant', 'Multiply']
    >>> gg.evaluate([y, gg.gradients(y, x)])
    [array([0. , 1.5]), array([0., 3.])]
    """
    need_torch("open_torch()")
    check_openable_torch(module, parameters, "open_torch()")
    return _opening.opened(module, tensors, parameters, truth("updates", updates))


def check_openable_torch(module: Any, parameters: str, who: str) -> None:
    """Raise for input that is not a module or function, and for no choice of parameters."""
    if not callable(module) and type(module).__name__ != "ExportedProgram":
        raise TypeError(f"{who} takes a module or function of torch, got {module!r:.80}")
    if parameters not in PARAMETERS:
        raise ValueError(f"parameters is one of {PARAMETERS}, got {parameters!r}")


def is_of_torch(fn: Any, args: Any) -> bool:
    """Whether a program is one of PyTorch: a module, a method of one, what torch.export made, or a
    function that a tensor of torch is given to."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    kinds = torch.nn.Module, torch.export.ExportedProgram
    if isinstance(fn, kinds) or isinstance(getattr(fn, "__self__", None), torch.nn.Module):
        return True
    return any(isinstance(x, torch.Tensor) for x in torch.utils._pytree.tree_leaves(args))
