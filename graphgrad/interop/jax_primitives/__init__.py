"""How a program of JAX becomes nodes of a graph."""
