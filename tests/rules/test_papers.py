"""Published behaviour is reproduced: every program in examples/papers holds its margin.

Each runs in a process of its own with one thread, so that parallel tests do not hinder each other.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PAPERS = sorted((Path(__file__).resolve().parents[2] / "examples" / "papers").glob("*.py"))
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@pytest.mark.ci
@pytest.mark.parametrize("path", PAPERS, ids=lambda p: p.stem)
def test_published_behaviour(path):
    command = [sys.executable, "-W", "error", str(path)]
    done = subprocess.run(
        command, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()
