"""The arguments of `demo`, `bench` and `tf1`, which run whole programs."""

from __future__ import annotations

from argparse import REMAINDER, ArgumentParser, ArgumentTypeError
from pathlib import Path


def demo_arguments(parser: ArgumentParser) -> None:
    """The folder, how long, the seed."""
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("demo-report"),
        metavar="FOLDER",
        help="the folder of the report (default: demo-report)",
    )
    parser.add_argument("--quick", action="store_true", help="one short training run of each kind")
    parser.add_argument(
        "--seed", type=_seed, default=0, help="seed of all random numbers (default: 0)"
    )


def bench_arguments(parser: ArgumentParser) -> None:
    """Backends and sizes."""
    parser.add_argument(
        "--backend",
        action="append",
        metavar="NAME",
        help="run on this backend; may be given again (default: all that are installed)",
    )
    parser.add_argument("--tiny", action="store_true", help="tiny sizes, to try the command")


def tf1_arguments(parser: ArgumentParser) -> None:
    """The program and its own arguments."""
    parser.add_argument(
        "program", metavar="PROGRAM.py", help="a program, which may use `import tensorflow`"
    )
    parser.add_argument("args", nargs=REMAINDER, help="the program's own arguments")


def _seed(text: str) -> int:
    seed = int(text)
    if not 0 <= seed < 2**31:
        raise ArgumentTypeError(f"a seed is from 0 to {2**31 - 1}, got {seed}")
    return seed
