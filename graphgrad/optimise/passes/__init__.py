"""Passes over whole programs, and the steps of the normal form that are not single rules."""
