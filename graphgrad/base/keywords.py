"""Keywords of other libraries: an error about one says our own, as it leaves a graph's block.

The error is Python's, raised where a function is called, and gets a note where it leaves
`with graph:`. So signatures are what they are, nobody stands between functions and their callers,
and a call that is right pays nothing.
"""

from __future__ import annotations

import dis
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType, FunctionType, ModuleType, TracebackType
from typing import Any

from .errors import SymbolicError, did_you_mean

OURS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("dim", "dims", "dimension", "reduction_indices"), ("axis", "axes")),
    **dict.fromkeys(("axis", "perm"), ("axes",)),
    "axes": ("axis",),
    **dict.fromkeys(("keepdim", "keep_dims"), ("keepdims",)),
    "size": ("shape", "output_size"),
    "shape": ("size",),
    **dict.fromkeys(("input", "tensor", "tensors", "arr", "a", "values", "arrays"), ("x", "xs")),
    "other": ("x2", "y"),
    **dict.fromkeys(("initial_value", "init", "value"), ("initial", "value")),
    **dict.fromkeys(("rng", "generator", "key", "random_state"), ("seed",)),
    **dict.fromkeys(("stddev", "scale", "sigma"), ("std", "scale")),
    "loc": ("mean",),
    "minval": ("low",),
    "maxval": ("high",),
    "unbiased": ("correction",),
    **dict.fromkeys(("lr", "rate", "step_size"), ("learning_rate",)),
    "eps": ("epsilon",),
    **dict.fromkeys(("betas", "b1"), ("beta1",)),
    "b2": ("beta2",),
    "p": ("rate",),
    **dict.fromkeys(("is_training", "train"), ("training",)),
    **dict.fromkeys(("stride", "window_strides"), ("strides",)),
    **dict.fromkeys(("kernel_size", "pool_size", "ksize", "window_shape"), ("window",)),
    **dict.fromkeys(("kernel", "weight", "filter"), ("filters", "weights", "scale")),
    **dict.fromkeys(("dilations", "dilation_rate", "rhs_dilation"), ("dilation",)),
    "feature_group_count": ("groups",),
    "gamma": ("scale",),
    **dict.fromkeys(("beta", "bias"), ("offset",)),
    **dict.fromkeys(("num_classes", "n_classes"), ("depth",)),
    "target": ("labels",),
    "feed_dict": ("feeds",),
    "fetches": ("tensors",),
    **dict.fromkeys(("wrt", "argnums", "sources", "inputs"), ("xs",)),
    **dict.fromkeys(("outputs", "cost", "loss"), ("ys",)),
    **dict.fromkeys(("grad_outputs", "output_gradients", "known_grads"), ("grad_ys",)),
    **dict.fromkeys(("consider_constant", "no_grad_vars"), ("stop_gradients",)),
    **dict.fromkeys(("unconnected_gradients", "disconnected_inputs"), ("unconnected",)),
}
"""Their keyword -> ours, of which a function has one or the other."""

CALLED = re.compile(r"'(Tensor|tuple|int|str|.*DType)' object is not callable")
ATTRIBUTES = ("T", "mT", "shape", "size", "ndim", "dtype", "name")
_ARGUMENTS = ("LOAD_CONST", "LOAD_SMALL_INT", "PUSH_NULL", "PRECALL", "KW_NAMES", "CACHE")
NO_CALL = "A tensor is not a function: t.T, t.shape and t.ndim are written without brackets."
ELEMENT = "setting an array element with a sequence."
NO_ELEMENT = "An array cannot hold a tensor: use gg.stack(tensors), or gg.at(t)[index].set(value)."

PACKAGE = __name__.partition(".")[0]
_SAID = r"([\w.]+)\(\) got an unexpected keyword argument '(\w+)'"


def note_keyword(error: object = None, trace: TracebackType | None = None) -> None:
    """Note our keyword on an error about another, if a function of graphgrad was given it."""
    if not isinstance(error, TypeError | ValueError) or trace is None:
        return
    note = ""
    if str(error) == ELEMENT:
        note = NO_ELEMENT if isinstance(error.__cause__, SymbolicError) else ""
    elif called := CALLED.fullmatch(str(error)):
        note = NO_CALL if called[1] == "Tensor" or _is_attribute(trace) else ""
    elif said := re.match(_SAID, str(error)):
        name, keyword = said.groups()
        while trace.tb_next is not None:
            trace = trace.tb_next
        if not _is_of_others(trace):
            callees = _called(name.removesuffix(".__init__"), trace.tb_frame)
            note = "\n".join(filter(None, (_answer(*each, keyword) for each in callees)))
    if note and note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _is_attribute(trace: TracebackType) -> bool:
    """Whether what is called where an error came from is an attribute that tensors have."""
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = dis.get_instructions(trace.tb_frame.f_code)
    done = [i for i in code if i.offset < trace.tb_lasti and i.opname not in _ARGUMENTS]
    return done[-1].opname in ("LOAD_ATTR", "LOAD_METHOD") and done[-1].argval in ATTRIBUTES


def _is_of_others(trace: TracebackType) -> bool:
    """Whether what raised an error in a frame is seen there, and is not a function of graphgrad.

    The instructions of a call `a.b(...)` that begin where it does load a, and b of it.
    """
    done = [i for i in dis.get_instructions(trace.tb_frame.f_code) if i.offset <= trace.tb_lasti]
    call = done[-1]
    if not call.opname.startswith("CALL"):
        return True
    if call.positions is None or call.positions.lineno is None:
        return False
    line, _, column, _ = call.positions
    first = [
        i
        for i in done
        if i.positions is not None
        and (i.positions.lineno, i.positions.col_offset) == (line, column)
        and i.positions != call.positions
    ]
    if not all(i.opname.startswith(("LOAD_", "PUSH_NULL")) for i in first):
        return False
    names = [str(i.argval) for i in first if i.opname.startswith("LOAD_")]
    callee: Any = None
    for i, name in enumerate(names):
        callee = inspect.getattr_static(callee, name, None) if i else _names_in(trace).get(name)
    module = getattr(callee, "__module__", None)
    return isinstance(module, str) and not module.startswith(PACKAGE)


def _names_in(trace: TracebackType) -> dict[str, Any]:
    frame = trace.tb_frame
    return {**frame.f_builtins, **frame.f_globals, **frame.f_locals}


def _answer(shown: str, function: Callable[..., Any], keyword: str) -> str:
    """What a function says for a keyword that it does not have, and how it is called."""
    signature = inspect.signature(function)
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    named = [p.name for p in parameters if p.kind is not p.POSITIONAL_ONLY]
    if keyword in named:
        return ""
    ours = next((n for n in OURS.get(keyword, ()) if n in named), None)
    said = f"graphgrad says {ours}= for {keyword}=." if ours else did_you_mean(keyword, named)
    plain = signature.replace(parameters=parameters, return_annotation=signature.empty)
    return f"{said} It is {shown}{plain}.".lstrip()


def _called(name: str, frame: FrameType) -> Sequence[tuple[str, Callable[..., Any]]]:
    """Functions of graphgrad that an error in a frame calls so, by the names that are seen there.

    Those that the frame writes in full (gg.zeros, not gg.initializers.zeros), else one of which it
    writes the last name: that of a method (x.sum is gg.sum).
    """
    written = set(frame.f_code.co_names)
    pairs = [
        (shown, o)
        for shown, o in _seen(frame.f_globals | frame.f_locals)
        if isinstance(o, FunctionType | type)
        and o.__qualname__ == name
        and o.__module__.startswith(PACKAGE)
        and shown.rpartition(".")[2] in written
    ]
    full = [each for each in pairs if written.issuperset(each[0].split("."))]
    longest = {o: shown for shown, o in sorted(full, key=lambda each: each[0].count("."))}
    return [(shown, o) for o, shown in longest.items()] or pairs[:1]


def _seen(names: Mapping[str, Any], inside: str = "") -> Iterator[tuple[str, Any]]:
    """What stands under names, and in modules of graphgrad among it, and in their modules."""
    for name, o in names.items():
        yield f"{inside}{name}", o
        if isinstance(o, ModuleType) and o.__name__.startswith(PACKAGE) and inside.count(".") < 2:
            yield from _seen({n: vars(o).get(n) for n in dir(o)}, f"{inside}{name}.")
