"""Training: optimizers, averages, schedules, savers: `tf.train`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

from .session import Session
from .training import optimizers as _optimizers
from .training import saver as _saver
from .training import schedules as _schedules
from .training import steps as _steps
from .training.averages import ExponentialMovingAverage
from .training.optimizer import Optimizer
from .training.optimizers import *
from .training.saver import *
from .training.schedules import *
from .training.steps import *
from .variables import global_variables_initializer

__all__ = [
    "Coordinator", "ExponentialMovingAverage", "MonitoredTrainingSession", "Optimizer",
    "start_queue_runners", "write_graph",
]  # fmt: skip
__all__ += _optimizers.__all__
__all__ += _saver.__all__
__all__ += _schedules.__all__
__all__ += _steps.__all__


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
