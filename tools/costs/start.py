"""What starting costs: CPU time of a process beyond that of an empty Python, beside NumPy's import.

    python tools/costs/start.py [--rounds 21]

User and system time of processes of their own, which take turns; bytecode is written before. "over
NumPy" is the median of the ratios within a round, "modules" what a process has loaded at its end.
"""

import argparse
import os
import statistics
import subprocess
import sys

GRAPH = "import graphgrad as gg; x = gg.placeholder((3,)); y = gg.sum(x * gg.exp(x))"
PROGRAMS = {
    "import numpy": "import numpy",
    "import graphgrad": "import graphgrad",
    "a graph and its gradient": f"{GRAPH}; gg.gradients(y, x)",
    "its first run": f"{GRAPH}; gg.compile(x, gg.gradients(y, x), backend='numpy')([1, 2, 3])",
    "all names of graphgrad": "from graphgrad import *",
}
COUNT = "; import sys; print(len(sys.modules))"
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def seconds(program):
    """User and system time of a process that runs a program."""
    pid = os.posix_spawn(sys.executable, [sys.executable, "-c", program], ENVIRONMENT)
    _, status, usage = os.wait4(pid, 0)
    assert status == 0, program
    return usage.ru_utime + usage.ru_stime


def modules(program):
    """How many modules it loads; the bytecode of all of them is written then."""
    command = [sys.executable, "-c", program + COUNT]
    return int(subprocess.run(command, env=ENVIRONMENT, stdout=subprocess.PIPE, check=True).stdout)


def main():
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=21)
    rounds = parser.parse_args().rounds
    counts = {name: modules(program) for name, program in PROGRAMS.items()}
    taken = []
    for _ in range(rounds):
        empty = seconds("pass")
        taken.append({name: seconds(program) - empty for name, program in PROGRAMS.items()})
    for name, count in counts.items():
        time = statistics.median(t[name] for t in taken)
        over = statistics.median(t[name] / t["import numpy"] for t in taken)
        print(f"{name:26} {time * 1e3:6.0f} ms  over NumPy {over:5.2f}  {count:4} modules")


if __name__ == "__main__":
    main()
