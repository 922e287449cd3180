"""NumPy's functions of arrays that are made of other ops."""
