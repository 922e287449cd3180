"""Training: optimizers, averages, schedules, savers: `tf.train`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

from .session import Session
from .training.averages import ExponentialMovingAverage
from .training.optimizer import Optimizer
from .training.optimizers import (
    AdadeltaOptimizer,
    AdagradOptimizer,
    AdamOptimizer,
    FtrlOptimizer,
    GradientDescentOptimizer,
    MomentumOptimizer,
    ProximalGradientDescentOptimizer,
    RMSPropOptimizer,
)
from .training.saver import (
    CheckpointState,
    NewCheckpointReader,
    Saver,
    checkpoint_exists,
    get_checkpoint_state,
    latest_checkpoint,
    list_variables,
    load_checkpoint,
    load_variable,
)
from .training.schedules import (
    cosine_decay,
    exponential_decay,
    inverse_time_decay,
    natural_exp_decay,
    piecewise_constant,
    polynomial_decay,
)
from .training.steps import (
    assert_global_step,
    create_global_step,
    get_global_step,
    get_or_create_global_step,
    global_step,
)
from .variables import global_variables_initializer

__all__ = [
    "AdadeltaOptimizer", "AdagradOptimizer", "AdamOptimizer", "CheckpointState", "Coordinator",
    "ExponentialMovingAverage", "FtrlOptimizer", "GradientDescentOptimizer", "MomentumOptimizer",
    "MonitoredTrainingSession", "NewCheckpointReader", "Optimizer",
    "ProximalGradientDescentOptimizer", "RMSPropOptimizer", "Saver", "assert_global_step",
    "checkpoint_exists", "cosine_decay", "create_global_step", "exponential_decay",
    "get_checkpoint_state", "get_global_step", "get_or_create_global_step", "global_step",
    "inverse_time_decay", "latest_checkpoint", "list_variables", "load_checkpoint",
    "load_variable", "natural_exp_decay", "piecewise_constant", "polynomial_decay",
    "start_queue_runners", "write_graph",
]  # fmt: skip


class Coordinator:
    """Says when threads stop; there are none here."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._stop = False

    def should_stop(self) -> bool:
        """Whether `request_stop` was called."""
        return self._stop

    def request_stop(self, *_: Any) -> None:
        """Say that it is over."""
        self._stop = True

    def join(self, *_: Any, **__: Any) -> None:
        """Nothing to wait for."""

    @contextmanager
    def stop_on_exception(self) -> Any:
        """A block; what it raises goes on."""
        try:
            yield
        finally:
            self._stop = True


def start_queue_runners(*_: Any, **__: Any) -> list[Any]:
    """No threads."""
    return []


@contextmanager
def MonitoredTrainingSession(*_: Any, **__: Any) -> Any:
    """A session whose variables are initialised."""
    with Session() as session:
        session.run(global_variables_initializer())
        yield session


def write_graph(*_: Any, **__: Any) -> None:
    """Not there."""
    raise NotImplementedError("write_graph: keep the program that builds the graph")
