"""What programs use of `tf.contrib`."""

from __future__ import annotations

from .. import distributions, graph_editor
from . import framework, layers, metrics, opt, rnn, slim, util

__all__ = ["distributions", "framework", "graph_editor", "layers", "metrics", "opt", "rnn", "slim", "util"]
