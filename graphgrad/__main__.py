"""The command line: `python -m graphgrad`."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from . import __version__


class Command(NamedTuple):
    """One subcommand.

    summary    one line for --help
    arguments  adds its arguments to its parser
    module     has run(options) -> exit code; imported only when the command is used
    extra      what to install for it
    """

    summary: str
    arguments: Callable[[argparse.ArgumentParser], None]
    module: str
    extra: str


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


def _seed(text: str) -> int:
    seed = int(text)
    if not 0 <= seed < 2**31:
        raise argparse.ArgumentTypeError(f"a seed is from 0 to {2**31 - 1}, got {seed}")
    return seed


COMMANDS = {
    "demo": Command(
        "train one network with two gradients, and write a report",
        _demo_arguments,
        "graphgrad.demo.command",
        "graphgrad[demo]",
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 2 where it cannot start."""
    options = _parser().parse_args(arguments)
    command = COMMANDS[options.command]
    try:
        module = importlib.import_module(command.module)
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
    code: int = module.run(options)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m graphgrad")
    parser.add_argument("--version", action="version", version=f"graphgrad {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    for name, command in COMMANDS.items():
        command.arguments(commands.add_parser(name, help=command.summary))
    return parser


if __name__ == "__main__":
    sys.exit(main())
