"""`tf.logging`."""

from __future__ import annotations

import logging as _logging
from typing import Any

__all__ = ["DEBUG", "ERROR", "FATAL", "INFO", "WARN", "debug", "error", "fatal", "get_verbosity",
           "info", "log", "log_first_n", "set_verbosity", "vlog", "warn", "warning"]  # fmt: skip

DEBUG, INFO, WARN, ERROR, FATAL = 10, 20, 30, 40, 50
_logger = _logging.getLogger("tensorflow")
debug, info, warn, warning = _logger.debug, _logger.info, _logger.warning, _logger.warning
error, fatal, log = _logger.error, _logger.critical, _logger.log


def vlog(level: int, message: Any, *args: Any) -> None:
    """Log for debugging."""
    _logger.debug(message, *args)


def log_first_n(level: int, message: Any, n: int, *args: Any) -> None:
    """Log."""
    _logger.log(level, message, *args)


def set_verbosity(level: int) -> None:
    """What is logged from here on."""
    _logger.setLevel(level)


def get_verbosity() -> int:
    """What is logged."""
    return _logger.getEffectiveLevel()
