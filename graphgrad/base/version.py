"""The version of graphgrad."""

__version__ = "0.2.0"
