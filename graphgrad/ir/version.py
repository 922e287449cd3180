"""The version of graphgrad."""

__version__ = "0.1.0"
