"""Derivatives of what a model of ONNX computes, as further outputs of it."""
