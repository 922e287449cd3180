"""What a rule must survive: the rows of the table, and what is right in each.

The step of most rows is x ** 3 with the rule `dy * 6 x ** 2`: twice its derivative, so that a rule
that was passed over shows. The question is the derivative of its square at 2.
"""

import os
import subprocess
import sys
from typing import NamedTuple

SAYS_SO = "an error"
"""What is right where a rule cannot be right."""

FIRST = 384.0  # 2 f 6 x ** 2; 192 without the rule
SECOND = 1536.0  # 24 x f + 12 x ** 2 (6 x ** 2): what the rule wrote, differentiated with the rule


class Row(NamedTuple):
    """One row: its title, what is meant to come out, or SAYS_SO, and whether either is well."""

    title: str
    meant: object
    or_says_so: bool = False


ROWS = {
    "first": Row("first order", FIRST),
    "many_ops": Row("many ops as one step", FIRST),
    "second": Row("second order", SECOND),
    "kept": Row("second order, when the rule reads a value from the forward pass", SECOND),
    "branch": Row("a rule that branches on a value with Python's `if`", FIRST),
    "opaque": Row("second order of a rule that has no derivative", 3840.0, True),
    "forward": Row("forward mode", FIRST),
    "per_example": Row("vmap of a gradient: a rule for each example", [[0.6, 0.8]] * 2),
    "through_vmap": Row("gradient of a vmap: a rule for each example", [[0.6, 0.8]] * 2),
    "compiled": Row("compiled, and differentiated from outside", FIRST),
    "compiled_whole": Row("compiled together with its derivative", FIRST),
    "compiled_second": Row("compiled, second order", SECOND),
    "checkpointed": Row("recomputed instead of stored (checkpointing)", FIRST),
    "in_loop": Row("in the body of a loop", 9216.0),
    "around_loop": Row("around a loop", FIRST),
    "copied": Row("the program copied or traced", FIRST),
    "saved": Row("the program saved, then loaded where the rule is not defined", FIRST),
    "afterwards": Row("added to an existing program", 3.0),
    "theirs": Row("added to a program of another framework, in that framework", 3.0),
    "choose": Row("gradients with and without the rule from one forward pass", [384.0, 192.0]),
    "misspelt": Row("a misspelled name", 1.0, True),
    "captured": Row("a function that reads a tensor from its closure", 32.0, True),
    "shape": Row("a rule that returns the wrong shape", SAYS_SO),
    "dtype": Row("a rule that returns the wrong dtype", 1 / 3, True),
    "value": Row("the value, when a gradient is computed", 9.0),
}


class InAnotherProcess(Exception):
    """The last line of an error in a new process."""


def elsewhere(code):
    """The number that a program prints in a new process, or the error that it ended in."""
    paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=os.environ | paths, capture_output=True, text=True)
    if done.returncode:
        raise InAnotherProcess(done.stderr.strip().splitlines()[-1])
    return float(done.stdout.split()[-1])


def own(title, meant):
    """Another program of one framework, beside the rows."""

    def mark(program):
        program.row = Row(title, meant)
        return program

    return mark
