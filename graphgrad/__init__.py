"""graphgrad: a graph-mode compiler that rewrites gradient subgraphs."""
