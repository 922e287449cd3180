"""Work that comes in the midst of other work on one thread: a signal handler's, a finalizer's.

It has buffers of its own and waits for no lock that its thread has: all results are those of
undisturbed work, and nothing waits for ever.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from importlib.util import find_spec

import pytest

BACKENDS = ["numpy", *(["llvm"] if find_spec("llvmlite") else [])]


def passes(*arguments):
    command = [sys.executable, "-m", "tests.reentering", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("backend", "way"),
    [
        ("numpy", "line"),
        pytest.param("numpy", "finalizer", marks=pytest.mark.ci),
        *[
            pytest.param(b, w, marks=pytest.mark.ci)
            for b in BACKENDS[1:]
            for w in ("line", "finalizer")
        ],
    ],
)
def test_results_are_those_of_undisturbed_work(backend, way):
    passes(backend, way, "499", "0.2")


@pytest.mark.slow
@pytest.mark.parametrize("way", ["signal", "collector"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_results_are_those_of_undisturbed_work_whenever_the_other_comes(backend, way):
    """By a timer, and by the collector: when they come is up to the machine."""
    if way == "signal" and not hasattr(signal, "setitimer"):
        pytest.skip("no timers here")
    passes(backend, way, "499", "0.5")


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_results_are_those_of_undisturbed_work_wherever_the_other_comes(backend):
    passes(backend, "line", "13", "0")


OPENED = """
import gc, sys
import numpy as np
import graphgrad as gg

going = True

class Garbage:
    def __init__(self):
        self.me = self

    def __del__(self):
        if going:
            work()
            Garbage()

def scope():
    with gg.Graph(), gg.name_scope("a"):
        gg.constant(1.0)

def name():
    with gg.temporary_gradient("of a block", lambda site, dy: dy):
        pass

with gg.Graph():
    x = gg.placeholder((2,))
    f = gg.compile(x, gg.exp(x), backend="numpy")

def run():
    f(np.ones(2))

def rows():
    with gg.Graph():
        x = gg.placeholder((2,))
        gg.vmap(gg.sin)(x)

work = globals()[sys.argv[1]]
work()
gc.set_threshold(3)
Garbage()
for _ in range(500):
    work()
going = False
"""


@pytest.mark.parametrize(
    "work",
    [
        *(pytest.param(name, marks=pytest.mark.ci) for name in ("scope", "run")),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("name", "rows")),
    ],
)
def test_what_is_opened_while_the_collector_interrupts_an_opening_is_whole(work):
    """Python before 3.12 collects in the midst of ContextVar.set, too."""
    command = [sys.executable, "-c", OPENED, work]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stderr) == (0, "")
