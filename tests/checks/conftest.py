"""Every test here has a graph of its own."""

from ..differentiate.helpers import graph

__all__ = ["graph"]
