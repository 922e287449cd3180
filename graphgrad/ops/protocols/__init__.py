"""How tensors meet Python's operators and NumPy's functions."""
