"""Reductions, running reductions, and order along an axis."""
