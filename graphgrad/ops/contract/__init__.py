"""Sums of products over axes."""
