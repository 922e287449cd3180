"""What the commands are tried on."""

import numpy as np

import graphgrad as gg


def graph():
    g = gg.Graph("model")
    with g:
        x = gg.placeholder((2,), name="x")
        with gg.override_gradient(lambda site, dy: dy * 2.0):
            y = gg.sin(x)
        total = gg.sum(y, axis=0)
        gg.gradients(total, [x])
    return g


def tensors():
    x = gg.placeholder(("N",), "float32", name="x")
    return {"y": gg.exp(x), "nothing": None}


def compiled():
    x = gg.placeholder((), name="x")
    return gg.compile(x, gg.log(x))


def exact():
    x = gg.placeholder((3,), name="x")
    with gg.override_gradient(lambda site, dy: dy * gg.cos(site.inputs[0])):
        return gg.sin(x)


def suspicious():
    x = gg.placeholder((3,), name="x")
    return gg.sum(gg.round(x))


def number():
    return np.float64(3.0)


def broken():
    return gg.placeholder((2,)) + gg.placeholder((3,))
