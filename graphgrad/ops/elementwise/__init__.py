"""Functions of each element on its own."""
