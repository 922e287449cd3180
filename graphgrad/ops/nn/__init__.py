"""Functions of neural networks, one file an idea."""

from .activations import elu, gelu, leaky_relu, log_sigmoid, relu, sigmoid, silu, softplus
from .classes import one_hot
from .convolution import conv, conv_transpose
from .cross_entropy import cross_entropy
from .dropout import dropout
from .normalisation import batch_norm, layer_norm
from .pooling import avg_pool, max_pool
from .softmax import log_softmax, softmax

__all__ = [
    "avg_pool",
    "batch_norm",
    "conv",
    "conv_transpose",
    "cross_entropy",
    "dropout",
    "elu",
    "gelu",
    "layer_norm",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "max_pool",
    "one_hot",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
]
