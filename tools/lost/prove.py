"""Why rules get lost: what a rule must survive, run in seven frameworks.

python tools/lost/prove.py                     run all that are installed; print the table
python tools/lost/prove.py in_jax in_pytorch   run these
python tools/lost/prove.py --write [in_jax]    and keep the outcomes, and write docs/lost.md
python tools/lost/prove.py --newest [in_jax]   that, each with its newest release, in an environment
                                               of its own

A framework is a file `in_*.py`, a row a function in it that makes the row's program and returns
what comes out. Each file runs in a process of its own. A row is missing where the file says why:
NOT_OFFERED, or CANNOT_BE for what cannot go wrong there. Functions marked `own` are more of that
framework. A docstring says why the outcome is what it is, DOCUMENTED where that is told.
"""

import argparse
import datetime
import importlib
import json
import platform
import subprocess
import sys
import tempfile
import venv
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

import page  # noqa: E402
from rows import ROWS, SAYS_SO, Row  # noqa: E402

PACKAGES = {
    "in_graphgrad": ["jax"],  # whose programs it opens
    "in_tf1": ["tensorflow"],
    "in_tf2": ["tensorflow"],
    "in_pytorch": ["torch"],
    "in_jax": ["jax"],
    "in_pytensor": ["pytensor"],
    "in_autograd": ["autograd"],
}


def outcome(program, meant):
    """What became of a rule: right, silent (something else comes out and no word), or said."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            warnings.simplefilter("error", RuntimeWarning)
            got = program()
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        first = first.replace(f"{HERE.parents[1]}/", "")
        return {"outcome": "said", "got": f"{type(error).__name__}: {first}"}
    same = meant != SAYS_SO and np.allclose(got, meant, rtol=1e-9, atol=0)
    return {"outcome": "right" if same else "silent", "got": got}


def column(name):
    """Everything that a framework's file has to say; None where the framework is not installed."""
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError:
        return None
    own = {key: fn for key, fn in vars(module).items() if isinstance(getattr(fn, "row", None), Row)}
    cells = {key: cell(module, key) for key in ROWS}
    more = {
        key: fn.row._asdict() | outcome(fn, fn.row.meant) | told(module, key)
        for key, fn in own.items()
    }
    versions = module.VERSIONS | {"Python": platform.python_version()}
    day = datetime.date.today().isoformat()
    return {"name": module.NAME, "versions": versions, "day": day, "cells": cells, "more": more}


def cell(module, key):
    """One cell: the outcome of a program, or why there is none."""
    if key in module.NOT_OFFERED:
        return {"outcome": "not offered", "why": module.NOT_OFFERED[key]}
    if key in module.CANNOT_BE:
        return {"outcome": "cannot be", "why": module.CANNOT_BE[key]}
    return outcome(getattr(module, key), ROWS[key].meant) | told(module, key)


def told(module, key):
    """Why an outcome is what it is, and where that is documented."""
    why = " ".join((getattr(module, key).__doc__ or "").split())
    source = module.DOCUMENTED.get(key, "")
    return {name: text for name, text in {"why": why, "source": source}.items() if text}


def in_a_process(name, python=sys.executable):
    """`column` of a framework, in a new process: TensorFlow 1 and 2 cannot be in one."""
    code = f"import json, prove; print(json.dumps(prove.column({name!r})))"
    done = subprocess.run([python, "-c", code], cwd=HERE, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def in_an_environment(name):
    """`column` of the newest release of a framework."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = f"{folder}/bin/python"
        wanted = [*PACKAGES[name], str(HERE.parents[1])]
        subprocess.run([python, "-m", "pip", "install", "-q", "--upgrade", *wanted], check=True)
        return in_a_process(name, python)


def main():
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("frameworks", nargs="*", default=page.FRAMEWORKS, metavar="in_NAME")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--newest", action="store_true")
    options = parser.parse_args()
    run = in_an_environment if options.newest else in_a_process
    found = {name: run(name) for name in options.frameworks}
    ran = {name: column for name, column in found.items() if column}
    print(page.table(ran))
    print(*(f"{name}: not installed" for name in found if name not in ran), sep="\n")
    if options.write or options.newest:
        page.write(page.outcomes() | ran)


if __name__ == "__main__":
    main()
