"""What programs use of `tf.contrib`."""

from __future__ import annotations

import sys as _sys
from types import ModuleType as _ModuleType
from typing import Any as _Any

from .. import distributions, graph_editor
from ..missing import import_absent_below as _import_absent_below
from ..missing import missing as _missing
from . import framework, image, layers, metrics, opt, rnn, slim, util

__all__ = [
    "distributions", "framework", "graph_editor", "image", "layers", "metrics", "opt", "rnn",
    "slim", "util",
]  # fmt: skip


def _also(path: str, module: _ModuleType) -> None:
    """Make a module known under another path below this one."""
    parts = path.split(".")
    holder = _sys.modules[__name__]
    for i, part in enumerate(parts):
        full = f"{__name__}.{'.'.join(parts[: i + 1])}"
        last = i == len(parts) - 1
        found = module if last else _sys.modules.get(full) or _ModuleType(full)
        if not hasattr(found, "__path__"):
            found.__path__ = []
        _sys.modules[full] = found
        setattr(holder, part, found)
        holder = found


_also("graph_editor", graph_editor)
_also("distributions", distributions)
_also("layers.python.layers", layers)
_also("layers.python.layers.layers", layers)
_also("layers.python.layers.initializers", layers)
_also("layers.python.layers.utils", layers)
_also("framework.python.ops", framework)
_sys.modules[f"{__name__}.framework.python.ops.arg_scope"] = framework
_also("slim.python.slim", slim)
_also("rnn.python.ops.core_rnn_cell", rnn)


def __getattr__(name: str) -> _Any:
    """What TensorFlow has and this has not: it says so when it is used."""
    return _missing(name, "contrib.")


_import_absent_below(__name__)
