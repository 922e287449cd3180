"""`open`: a function of JAX or a module of PyTorch, opened, and looked at like any graph."""

from __future__ import annotations

import ast
import inspect
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..attribution.attribute import attribute
from ..base.errors import GraphGradError
from ..base.tree import flatten
from ..base.words import visible
from ..compiled import compile
from ..interop.jax_programs import open_jax
from ..interop.programs import report_of
from ..interop.torch_programs import is_of_torch, open_torch
from ..ir.graph import Graph, GraphScope
from ..ir.node import Tensor
from ..ops.foreign.torch_arrays import array_of
from ..ops.sources import placeholder
from .checking import explain_arguments, lint_arguments, run_explain, run_lint
from .errors import TargetError, UserCodeError
from .feeding import feed_arguments, feeds_for
from .pictures import dot, dot_arguments, html, html_arguments
from .target import TargetGraph, add_target, ends_of, function_of, users_own

__all__ = ["open_arguments", "run_open"]

TARGET = (
    "TARGET is module:function or path/to/file.py:function: a function of JAX, a callable "
    "module or a module of PyTorch, of arrays that --input describes; or, without --input, a "
    "function of no arguments that returns (fn, args). Arrays and tensors among args are inputs "
    "then, arrays inside of pytrees variables. A function that is given tensors is one of PyTorch"
)
_INPUT = re.compile(r"(?P<shape>[\w]+(x[\w]+)*)?(:(?P<dtype>\w+))?")


class Look(NamedTuple):
    """One way to look at what was opened.

    summary    for --help
    arguments  adds TARGET and its own
    run        takes the options, with the graph as the target; returns the exit code
    """

    summary: str
    arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]


def open_arguments(parser: ArgumentParser) -> None:
    """What to do with it, and the arguments of that."""
    looks = parser.add_subparsers(dest="look", metavar="look", required=True)
    for name, look in LOOKS.items():
        made = looks.add_parser(name, help=look.summary, description=f"{look.summary}. {TARGET}.")
        look.arguments(made)
        made.add_argument(
            "--input",
            action="append",
            default=[],
            metavar="2x3:float32",
            help="shape and dtype of each argument, in order; Nx3: N is open; :float32: a scalar",
        )
        made.add_argument("--parameters", choices=("variables", "constants"), default="variables")


def run_open(options: Namespace) -> int:
    """Open the program and look at it."""
    return LOOKS[options.look].run(options)


class OpenedProgram(NamedTuple):
    """A program with its arguments, and the arrays for placeholders among these.

    of_torch  whether it is one of PyTorch
    """

    fn: Any
    args: Sequence[Any]
    feeds: dict[Tensor, Any]
    of_torch: bool


def _program(options: Namespace) -> OpenedProgram:
    """The program and its arguments, in the current graph."""
    name = options.target
    found = function_of(name)
    if options.input:
        types = [_type(text) for text in options.input]
        names = _names(found, len(types))
        inputs = [placeholder(*t, name=n) for t, n in zip(types, names)]
        return OpenedProgram(found, inputs, {}, is_of_torch(found, ()))
    if not callable(found) or _names(found, 0):
        raise TargetError(f"{name} takes arguments: describe each, as --input 2x3:float32")
    with users_own(name):
        made = found()
    if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[1], tuple | list)):
        raise TargetError(f"{name} returned {made!r:.80}, not (fn, args)")
    fn, args = made
    feeds: dict[Tensor, Any] = {}
    of_torch, given = is_of_torch(fn, args), list(args)
    for i, (a, n) in enumerate(zip(args, _names(fn, len(args)))):
        if of_torch and hasattr(a, "requires_grad"):
            a = array_of(a)
        if _is_array(a):
            given[i] = placeholder(np.shape(a), a.dtype, name=n)
            feeds[given[i]] = a
    return OpenedProgram(fn, given, feeds, of_torch)


def _names(fn: Any, count: int) -> list[str]:
    """What the first arguments of a function are called; for none, those that it needs."""
    try:
        known = list(inspect.signature(getattr(fn, "forward", fn)).parameters.values())
    except (TypeError, ValueError):
        known = []
    plain = [p for p in known if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if not count:
        return [p.name for p in plain if p.default is p.empty]
    return [plain[i].name if i < len(plain) else f"arg{i}" for i in range(count)]


def _is_array(value: Any) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "shape") and value.dtype.kind in "biufcV"


def _type(text: str) -> tuple[tuple[int | str, ...], str]:
    match = _INPUT.fullmatch(text)
    if match is None or not text:
        raise TargetError(f"--input takes a shape and a dtype, as 2x3:float32, got {text!r}")
    shape = match["shape"].split("x") if match["shape"] else []
    return tuple([int(d) if d.isdecimal() else d for d in shape]), match["dtype"] or "float32"


def _opened(options: Namespace) -> dict[Tensor, Any]:
    """Open the program, as the target of the options. Returns arrays for its placeholders."""
    name = options.target
    graph = Graph("graph")
    with GraphScope(graph):
        program = _program(options)
        made = _traced(name, lambda: _built(program, options.parameters))
    options.target = TargetGraph(graph, _outputs(made) or ends_of(graph.nodes), name)
    return program.feeds


def _built(program: OpenedProgram, parameters: str) -> Any:
    if not program.of_torch:
        return open_jax(program.fn, *program.args, parameters=parameters)
    written = parameters == "variables"  # what it writes is left out
    made = open_torch(program.fn, *program.args, parameters=parameters, updates=written)
    return made[0] if written else made


def _outputs(made: Any) -> list[Tensor]:
    """The tensors in lists, tuples and dicts; none in another pytree."""
    try:
        return [t for t in flatten(made) if isinstance(t, Tensor)]
    except GraphGradError:
        return []


def _traced(name: str, call: Callable[[], Any]) -> Any:
    """What a call that traces the user's function returns; UserCodeError for what that raises."""
    try:
        return call()
    except GraphGradError:
        raise
    except Exception as error:
        raise UserCodeError(f"{name} raised {type(error).__name__}") from error


def _report(options: Namespace) -> int:
    """Print what becomes of what; exit code 1 where something cannot be opened."""
    with GraphScope(Graph("graph")):
        fn, args, _, of_torch = _program(options)
        report = _traced(options.target, lambda: report_of(fn, args, options.parameters, of_torch))
    print(report)
    return 1 if report.missing else 0


def _then(run: Callable[[Namespace], int]) -> Callable[[Namespace], int]:
    """A command for graphs, of what was opened."""

    def opened(options: Namespace) -> int:
        _opened(options)
        return run(options)

    return opened


def _attribute_arguments(parser: ArgumentParser) -> None:
    add_target(parser)
    parser.add_argument("--method", default="integrated_gradients", help="of gg.attribute")
    parser.add_argument("--of", metavar="CLASS", help="gg.attribute's target: a number, or several")
    parser.add_argument("-o", "--out", metavar="FILE", help="where a picture goes, an .svg or .png")
    feed_arguments(parser)


def _attribute(options: Namespace) -> int:
    """Print how much of the score each input has, for what is fed; else for the arguments given."""
    given = _opened(options)
    target = options.target
    if given and not options.feed and options.random is None:
        feeds = given
    else:
        feeds = feeds_for(target, options)
    model = compile(list(feeds), target.outputs[0])
    of = None if options.of is None else ast.literal_eval(options.of)
    arrays = {t.node.name: value for t, value in feeds.items()}
    found = attribute(model, arrays, options.method, target=of)
    for name, value in found.values.items():
        shown = np.array2string(np.asarray(value), threshold=20, edgeitems=3, prefix="  ")
        print(visible(f"{name}: sum {float(np.sum(value)):.6g}") + f"\n  {shown}")
    if options.out is not None:
        found.write_picture(options.out)
        print(f"picture: {options.out}")
    return 0


LOOKS = {
    "report": Look(
        "list what each operation becomes, and what cannot be opened", add_target, _report
    ),
    "dot": Look("write the graph as DOT, or draw it", dot_arguments, _then(dot)),
    "html": Look("write the graph as one offline page", html_arguments, _then(html)),
    "explain": Look("show which rule applies on each path", explain_arguments, _then(run_explain)),
    "lint": Look("find likely mistakes about gradients", lint_arguments, _then(run_lint)),
    "attribute": Look("attribute a score to the inputs", _attribute_arguments, _attribute),
}
