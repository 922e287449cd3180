"""`tf.nn`: functions of neural networks, and recurrent ones."""

from __future__ import annotations

from . import rnn as rnn_cell
from .ops import nn as _nn
from .ops.math import sigmoid, tanh
from .ops.nn import *
from .rnn import bidirectional_dynamic_rnn, dynamic_rnn, raw_rnn, static_rnn

__all__ = ["bidirectional_dynamic_rnn", "dynamic_rnn", "raw_rnn", "rnn_cell", "sigmoid",
           "static_rnn", "tanh"]  # fmt: skip
__all__ += _nn.__all__
