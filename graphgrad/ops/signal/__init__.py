"""Fourier transforms, signals, interpolation, polynomials."""
