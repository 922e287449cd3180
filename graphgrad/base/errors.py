"""The errors graphgrad raises: each is a GraphGradError and the builtin that fits."""

from collections.abc import Iterable

from .lazy import LazyModule
from .words import visible_lines

__all__ = [
    "DTypeError",
    "DeviceError",
    "DuplicateGradientError",
    "ExecutionError",
    "ExportError",
    "FileError",
    "GradientError",
    "GraphError",
    "GraphFormatError",
    "GraphGradError",
    "MissingBackendError",
    "PerformanceWarning",
    "RegionError",
    "ScopeError",
    "ShapeError",
    "StateError",
    "SymbolicError",
    "UnknownBackendError",
    "UnknownGradientError",
]

_difflib = LazyModule("difflib")


class GraphGradError(Exception):
    """Base of every error that graphgrad raises on purpose.

    Its text shows what is not printable in the names it says spelled out.
    """

    def __str__(self) -> str:
        return visible_lines(super().__str__())


class ShapeError(GraphGradError, ValueError, IndexError):
    """Shapes, axes or indices do not fit an op, a feed or a rule.

    An IndexError too, as in the array API of axes and masks that do not fit.
    """


class DTypeError(GraphGradError, TypeError):
    """A dtype does not fit an op, a feed, a rule or a question."""


class DeviceError(GraphGradError, ValueError):
    """A device that the tensors of a graph cannot be on."""


class SymbolicError(GraphGradError, TypeError):
    """A symbolic tensor was used where a value is needed."""


class GradientError(GraphGradError, ValueError):
    """A gradient rule broke its contract, or a gradient cannot be had."""


class UnknownGradientError(GraphGradError, LookupError):
    """No gradient rule of that name."""


class DuplicateGradientError(GraphGradError, KeyError):
    """A second rule under a name that is taken."""

    def __str__(self) -> str:
        return visible_lines(str(self.args[0]))  # KeyError would print the repr


class RegionError(GraphGradError, ValueError):
    """A region cannot be replaced as one step, or a mark marks nothing."""


class GraphError(GraphGradError, ValueError):
    """Tensors of different graphs, unknown names, graphs that cannot be copied."""


class StateError(GraphGradError, ValueError):
    """A variable without a value, or two updates of one variable."""


class ScopeError(GraphGradError, RuntimeError):
    """A scope was left in the wrong order, or in another thread or task."""


class GraphFormatError(GraphGradError, ValueError):
    """A stored graph that cannot be read: of another version, or broken."""


class FileError(GraphFormatError):
    """A file of graphgrad that cannot be written, or cannot be read."""


class ExportError(GraphGradError, ValueError):
    """A program that cannot be written in the form that was asked for."""


class ExecutionError(GraphGradError, RuntimeError):
    """A kernel broke its promise at run time."""


class UnknownBackendError(GraphGradError, LookupError):
    """No backend of that name is installed."""


class MissingBackendError(GraphGradError, ImportError):
    """A backend whose package is not installed."""


class PerformanceWarning(UserWarning):
    """Something is right, but slower than it might be."""


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """A sentence with the nearest known name, or `otherwise`."""
    known = list(known)
    near = [k for k in known if k.lower() == name.lower()]
    near = near or _difflib.get_close_matches(name, known, n=1)
    return f"Did you mean {near[0]!r}?" if near else otherwise


def counted(n: int, what: str) -> str:
    """`1 gradient`, `2 gradients`."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
