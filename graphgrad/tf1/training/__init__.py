"""Optimizers, averages, schedules and savers."""
