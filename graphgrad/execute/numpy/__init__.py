"""Programs on NumPy: groups of nodes as calls of ufuncs, block by block."""
