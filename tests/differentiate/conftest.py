"""Every test here has a graph of its own."""

from .helpers import graph

__all__ = ["graph"]
