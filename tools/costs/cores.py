"""What a second core gains: training steps with one thread and with more, beside NumPy's product.

    python tools/costs/cores.py [--threads 2] [--rounds 15]

Two processes take turns, one of which has one thread for graphgrad and for NumPy's BLAS, the other
more. A gain is the ratio of their shortest wall-clock times. The last column is a program's gain
over that of NumPy's product of two matrices of 1024 x 1024. The first program is element-wise: ten
million numbers are limited by the memory, which all cores share.
"""

import argparse
import os
import subprocess
import sys
import time

CALLS = 5  # in a turn
EDGE = 1024
NAMES = "NumPy's product", "element-wise (W3)", "MLP (W4)", "CNN (W6)", "transformer (W7)"


def calls(threads):
    """The programs, by name."""
    import numpy as np
    from training_steps import PROGRAMS, floats, step

    import graphgrad as gg

    a, b, out = floats(EDGE, EDGE), floats(EDGE, EDGE), np.empty((EDGE, EDGE), "float32")
    made = {NAMES[0]: lambda: np.matmul(a, b, out=out)}
    with gg.Graph():
        x = gg.placeholder((10**7,), "float32")
        y = x
        for _ in range(5):
            y = gg.nn.gelu(y * 0.5 + x)
        both = [gg.sum(y), gg.gradients(gg.sum(y), [x])[0]]
        wide = gg.compile([x], both, backend="llvm", num_threads=threads)
    numbers = floats(10**7)
    made[NAMES[1]] = lambda: wide(numbers)
    for name in NAMES[2:]:
        call, arrays = step(PROGRAMS[name], threads)
        made[name] = lambda call=call, arrays=arrays: call(*arrays)
    return made


def work(threads):
    """Time the program of each name that comes in: the shortest of some calls."""
    made = calls(threads)
    for call in made.values():
        call()
    for line in sys.stdin:
        call, times = made[line.strip()], []
        for _ in range(CALLS):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        print(min(times), flush=True)


def started(threads):
    """A process that works."""
    number = str(threads)
    several = {"OPENBLAS_NUM_THREADS": number, "OMP_NUM_THREADS": number}
    command = [sys.executable, __file__, "--work", number]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=os.environ | several, **pipes)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--work", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work)
        return
    workers = [started(1), started(options.threads)]
    times = {name: ([], []) for name in NAMES}
    for _ in range(options.rounds):
        for name in NAMES:
            for worker, ours in zip(workers, times[name], strict=True):
                worker.stdin.write(name + "\n")
                worker.stdin.flush()
                ours.append(float(worker.stdout.readline()))
    for worker in workers:
        worker.stdin.close()
        worker.wait()
    least = {name: [min(ours) for ours in both] for name, both in times.items()}
    most = least[NAMES[0]][0] / least[NAMES[0]][1]
    print(f"| program | one thread, ms | {options.threads} threads | gain | of NumPy's gain |")
    print("|---|---|---|---|---|")
    for name, (one, more) in least.items():
        gain = one / more
        print(f"| {name} | {one * 1e3:.2f} | {more * 1e3:.2f} | {gain:.2f} | {gain / most:.2f} |")


if __name__ == "__main__":
    main()
