"""`tf1`: runs a program that imports TensorFlow 1, by graphgrad.tf1."""

from __future__ import annotations

import runpy
import sys
from argparse import Namespace
from pathlib import Path

from ..tf1 import install
from .errors import TargetError, UserCodeError


def run(options: Namespace) -> int:
    """The program, with its arguments; its exit code where it ends with one."""
    program = Path(options.program)
    if not program.is_file():
        raise TargetError(f"there is no program {options.program!r}")
    argv, path = sys.argv, list(sys.path)
    sys.argv = [options.program, *options.args]
    sys.path.insert(0, str(program.parent.resolve()))
    try:
        with install():
            runpy.run_path(options.program, run_name="__main__")
    except Exception as error:
        raise UserCodeError(f"{options.program} raised {type(error).__name__}") from error
    finally:
        sys.argv, sys.path[:] = argv, path
    return 0
