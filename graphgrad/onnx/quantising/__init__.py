"""Grids of a net in training as integers of a file: QuantizeLinear and DequantizeLinear."""
