"""Tensors from nothing, and diagonals."""
