"""What a command stops for."""

from __future__ import annotations

from ..base.errors import GraphGradError


class TargetError(GraphGradError, LookupError):
    """What a command was given leads to no graph."""


class UserCodeError(Exception):
    """The user's module or function raised; what it raised is the cause."""
