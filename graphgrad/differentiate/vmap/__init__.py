"""VMAP: what a function builds for one example, built for a batch."""
