"""Tests of gradients: `tf.test`."""

from __future__ import annotations

import unittest
from tempfile import mkdtemp
from typing import Any

import numpy as np

from .graph import get_default_graph, reset_default_graph
from .second_order import compute_gradient, compute_gradient_error
from .session import Session

__all__ = ["TestCase", "compute_gradient", "compute_gradient_error", "get_temp_dir",
           "is_built_with_cuda", "is_gpu_available", "main"]  # fmt: skip


def is_gpu_available(*_: Any, **__: Any) -> bool:
    """False."""
    return False


def is_built_with_cuda() -> bool:
    """False."""
    return False


def get_temp_dir() -> str:
    """A new folder."""
    return mkdtemp()


def main(argv: Any = None) -> None:
    """Run the tests of the module."""
    unittest.main(argv=argv)


class TestCase(unittest.TestCase):
    """A test with a session."""

    def setUp(self) -> None:
        """A new default graph."""
        reset_default_graph()

    def test_session(self, graph: Any = None, **_: Any) -> Session:
        """A session of the default graph."""
        return Session(graph=graph or get_default_graph())

    session = test_session
    cached_session = test_session

    def assertAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: Any = None
                       ) -> None:  # fmt: skip
        """Two arrays are close."""
        np.testing.assert_allclose(a, b, rtol, atol, err_msg=msg or "")

    def assertAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        """Two arrays are equal."""
        np.testing.assert_array_equal(a, b, err_msg=msg or "")

    def assertNear(self, a: Any, b: Any, err: float, msg: Any = None) -> None:
        """Two numbers are near."""
        self.assertLessEqual(abs(a - b), err, msg)
