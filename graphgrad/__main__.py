"""The command line: `python -m graphgrad`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from . import __version__
from .base.errors import GraphGradError
from .base.words import visible_lines
from .commands.errors import UserCodeError

EXIT_CODES = """\
exit codes:
  0  success, and nothing was found
  1  found: differences (diff), findings (check, lint), a NaN or infinity (run --guard); or no such
     name (ops, rules), a model that cannot be loaded or whose derivative disagrees with finite
     differences (onnx), or a missing package (doctor, onnx --check)
  2  the command line is invalid: a name, an option, a feed, a file, a package
  3  your code raised an error: the module, the function, a rule or a py_function
"""


class Command(NamedTuple):
    """One subcommand. Its modules are imported only when it is used.

    summary    one line for --help
    arguments  "module:function" in graphgrad; adds its arguments to its parser
    run        "module:function"; takes the options and returns the exit code
    extra      what to install for it
    """

    summary: str
    arguments: str
    run: str
    extra: str = "graphgrad"


COMMANDS = {
    "new": Command(
        "write a small project with a rule, its test and a training script",
        "commands.new:arguments",
        "commands.new:new",
    ),
    "demo": Command(
        "train a network with and without an override, and write a report",
        "commands.programs:demo_arguments",
        "demo.command:run",
        "graphgrad[demo]",
    ),
    "bench": Command(
        "measure how fast graphgrad is on this machine",
        "commands.programs:bench_arguments",
        "bench.command:run",
    ),
    "dot": Command(
        "write the graph as DOT, or draw it as SVG, PNG or PDF",
        "commands.pictures:dot_arguments",
        "commands.pictures:dot",
    ),
    "html": Command(
        "write the graph as one offline page",
        "commands.pictures:html_arguments",
        "commands.pictures:html",
    ),
    "diff": Command(
        "show the differences between two graphs; exit code 1 if there are any",
        "commands.pictures:diff_arguments",
        "commands.pictures:run_diff",
    ),
    "run": Command(
        "compute the outputs, for arrays given by name",
        "commands.values:arguments",
        "commands.values:run",
    ),
    "check": Command(
        "check that every rule in the graph has the properties that it declares",
        "commands.checking:check_arguments",
        "commands.checking:check",
    ),
    "lint": Command(
        "find likely mistakes about gradients in the graph",
        "commands.checking:lint_arguments",
        "commands.checking:run_lint",
    ),
    "heal": Command(
        "list naive formulas and their stable forms; exit code 1 if there are any",
        "commands.checking:heal_arguments",
        "commands.checking:run_heal",
    ),
    "explain": Command(
        "show which rule applies on each path from outputs to inputs",
        "commands.checking:explain_arguments",
        "commands.checking:run_explain",
    ),
    "open": Command(
        "open a JAX or PyTorch program, and report on it, draw, explain, check or attribute it",
        "commands.opening:open_arguments",
        "commands.opening:run_open",
        "graphgrad[jax]",
    ),
    "tf1": Command(
        "run a TensorFlow 1 program with graphgrad.tf1",
        "commands.programs:tf1_arguments",
        "commands.tensorflow1:run",
    ),
    "info": Command(
        "list the contents of a saved graph or checkpoint",
        "commands.filing:info_arguments",
        "commands.filing:info",
    ),
    "onnx": Command(
        "list the contents of an ONNX model, or write a model with derivatives of its outputs",
        "commands.models:onnx_arguments",
        "commands.models:onnx",
    ),
    "ops": Command(
        "list the op types", "commands.listing:pattern_arguments", "commands.listing:ops"
    ),
    "rules": Command(
        "list the rules of the library and the registered rules",
        "commands.listing:pattern_arguments",
        "commands.listing:rules",
    ),
    "doctor": Command(
        "list the installed packages, the backend that will be used, threads and BLAS",
        "commands.listing:no_arguments",
        "commands.listing:doctor",
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code, which EXIT_CODES explains."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = _parser(arguments).parse_args(arguments)
    command = COMMANDS[options.command]
    try:
        run = _function(command.run)
    except ModuleNotFoundError as error:
        missing = (error.name or "graphgrad").partition(".")[0]
        if missing == "graphgrad":
            raise
        print(
            f"graphgrad {options.command}: the package {missing!r} is missing. "
            f"Install it with: pip install '{command.extra}'",
            file=sys.stderr,
        )
        return 2
    try:
        code: int = run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13  # as of a program that the signal ends
    except (GraphGradError, OSError) as error:
        _complain(options.command, str(error))
        return 2
    except UserCodeError as error:
        cause = error.__cause__
        assert cause is not None
        _complain(options.command, f"{error}\n{_traced(cause)}")
        return 3
    except Exception as error:  # of a rule or py_function, most likely
        _complain(options.command, f"{type(error).__name__}\n{_traced(error)}")
        return 3
    return code


def _function(name: str) -> Any:
    where, _, function = name.partition(":")
    return getattr(importlib.import_module(f"{__package__}.{where}"), function)


def _complain(command: str, text: str) -> None:
    print(f"graphgrad {command}: {visible_lines(text)}", file=sys.stderr)


def _traced(error: BaseException) -> str:
    """The traceback, from the user's own code on."""
    ours = str(Path(__file__).parent), str(Path(importlib.__file__).parent), "<frozen importlib"
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(ours):
        trace = trace.tb_next
    trace = trace or error.__traceback__
    return "".join(traceback.format_exception(type(error), error, trace)).rstrip()


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """The parser, with the arguments of the command that is named."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m graphgrad", epilog=EXIT_CODES, formatter_class=form
    )
    parser.add_argument("--version", action="version", version=f"graphgrad {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    for name, command in COMMANDS.items():
        made = commands.add_parser(
            name,
            help=command.summary,
            description=command.summary,
            epilog=EXIT_CODES,
            formatter_class=form,
        )
        if [name] == list(arguments[:1]):
            _function(command.arguments)(made)
    return parser


if __name__ == "__main__":
    sys.exit(main())
