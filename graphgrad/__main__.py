"""The command line: `python -m graphgrad`."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from . import __version__
from .commands import checking, listing, pictures, values
from .ir.errors import GraphGradError


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


def _seed(text: str) -> int:
    seed = int(text)
    if not 0 <= seed < 2**31:
        raise argparse.ArgumentTypeError(f"a seed is from 0 to {2**31 - 1}, got {seed}")
    return seed


COMMANDS = {
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
    "ops": Command(listing.OPS, listing.pattern_arguments, "graphgrad.commands.listing:ops"),
    "rules": Command(listing.RULES, listing.pattern_arguments, "graphgrad.commands.listing:rules"),
    "doctor": Command(listing.DOCTOR, listing.no_arguments, "graphgrad.commands.listing:doctor"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 2 where it cannot start."""
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
    except (GraphGradError, OSError) as error:
        print(f"graphgrad {options.command}: {error}", file=sys.stderr)
        return 2
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m graphgrad")
    parser.add_argument("--version", action="version", version=f"graphgrad {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    for name, command in COMMANDS.items():
        command.arguments(
            commands.add_parser(name, help=command.summary, description=command.summary)
        )
    return parser


if __name__ == "__main__":
    sys.exit(main())
