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


@pytest.mark.parametrize("way", ["line", "finalizer"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_results_are_those_of_undisturbed_work(backend, way):
    passes(backend, way, "499", "0.5")


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
