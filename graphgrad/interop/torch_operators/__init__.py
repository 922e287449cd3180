"""How a program of PyTorch becomes nodes of a graph."""
