"""The command line: `python -m graphgrad`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from . import __version__
from .commands import checking, filing, listing, models, new, pictures, values
from .commands.target import UserCodeError
from .ir.errors import GraphGradError
from .ir.words import visible_lines

EXIT_CODES = """\
exit codes:
  0  done, and nothing found
  1  found: differences (diff), findings (check, lint), a NaN or infinity (run --guard); or nothing
     of that name (ops, rules), something that cannot be loaded (onnx), or something needed is
     missing (doctor)
  2  the command cannot be done as it was given: a name, an option, a feed, a file, a package
  3  your code raised: the module, the function, a rule or a py_function
"""


class Command(NamedTuple):
    """One subcommand.

    summary    one line for --help
    arguments  adds its arguments to its parser
    run        "module:function"; takes the options and returns the exit code. The module is
               imported only when the command is used
    extra      what to install for it
    """

    summary: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: str
    extra: str = "graphgrad"


def _demo_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("demo-report"),
        metavar="FOLDER",
        help="where the report goes (default: demo-report)",
    )
    parser.add_argument("--quick", action="store_true", help="one short training run of each kind")
    parser.add_argument("--seed", type=_seed, default=0, help="of everything random (default: 0)")


def _bench_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--backend",
        action="append",
        metavar="NAME",
        help="run on this backend; may be given again (default: all that are installed)",
    )
    parser.add_argument("--tiny", action="store_true", help="sizes that say nothing, to try it")


def _tf1_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", metavar="PROGRAM.py", help="it may say `import tensorflow`")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="the program's own arguments")


def _seed(text: str) -> int:
    seed = int(text)
    if not 0 <= seed < 2**31:
        raise argparse.ArgumentTypeError(f"a seed is from 0 to {2**31 - 1}, got {seed}")
    return seed


COMMANDS = {
    "new": Command(new.SUMMARY, new.arguments, "graphgrad.commands.new:new"),
    "demo": Command(
        "train one network with two gradients, and write a report",
        _demo_arguments,
        "graphgrad.demo.command:run",
        "graphgrad[demo]",
    ),
    "bench": Command(
        "measure how fast graphgrad is on this machine",
        _bench_arguments,
        "graphgrad.bench.command:run",
    ),
    "dot": Command(pictures.DOT, pictures.dot_arguments, "graphgrad.commands.pictures:dot"),
    "html": Command(pictures.HTML, pictures.html_arguments, "graphgrad.commands.pictures:html"),
    "diff": Command(pictures.DIFF, pictures.diff_arguments, "graphgrad.commands.pictures:run_diff"),
    "run": Command(values.SUMMARY, values.arguments, "graphgrad.commands.values:run"),
    "check": Command(checking.CHECK, checking.check_arguments, "graphgrad.commands.checking:check"),
    "lint": Command(checking.LINT, checking.lint_arguments, "graphgrad.commands.checking:run_lint"),
    "explain": Command(
        checking.EXPLAIN, checking.explain_arguments, "graphgrad.commands.checking:run_explain"
    ),
    "tf1": Command(
        "run a program that imports TensorFlow 1, by graphgrad.tf1",
        _tf1_arguments,
        "graphgrad.commands.tensorflow1:run",
    ),
    "info": Command(filing.INFO, filing.info_arguments, "graphgrad.commands.filing:info"),
    "onnx": Command(models.ONNX, models.onnx_arguments, "graphgrad.commands.models:onnx"),
    "ops": Command(listing.OPS, listing.pattern_arguments, "graphgrad.commands.listing:ops"),
    "rules": Command(listing.RULES, listing.pattern_arguments, "graphgrad.commands.listing:rules"),
    "doctor": Command(listing.DOCTOR, listing.no_arguments, "graphgrad.commands.listing:doctor"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code, which EXIT_CODES explains."""
    options = _parser().parse_args(arguments)
    command = COMMANDS[options.command]
    where, _, function = command.run.partition(":")
    try:
        module = importlib.import_module(where)
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
        code: int = getattr(module, function)(options)
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


def _parser() -> argparse.ArgumentParser:
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
        command.arguments(made)
    return parser


if __name__ == "__main__":
    sys.exit(main())
