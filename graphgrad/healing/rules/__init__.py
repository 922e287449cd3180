"""Identities that a pattern cannot say: sums of any length, reductions over any axes."""
