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


def naive():
    x = gg.placeholder(("N",), name="x")
    loss = gg.sum(gg.log(1 + gg.exp(x)))
    gg.gradients(loss, x)
    return loss


def healed():
    x = gg.placeholder(("N",), name="x")
    loss = gg.sum(gg.heal(gg.log(1 + gg.exp(x))).ys)
    return loss, gg.gradients(loss, x)


def marked():
    x = gg.placeholder(("N",), name="x")
    with gg.override_gradient(gg.rules.ste()):
        return gg.log(1 + gg.exp(x))


def number():
    return np.float64(3.0)


def broken():
    return gg.placeholder((2,)) + gg.placeholder((3,))


def leaves():
    raise SystemExit(0)


def aside():
    """Something beside what is returned: not on the way to it."""
    x = gg.placeholder((2,), name="x")
    gg.cos(x)
    with gg.name_scope("inner"):
        return gg.sin(gg.exp(x))


def failing():
    def fails(array):
        raise RuntimeError("oh \x1b[31mno")

    x = gg.placeholder((2,), name="x")
    return gg.py_function(fails, [x], [x.type])


def clumsy():
    """A rule that raises when it is called."""

    def rule(site, dy):
        return dy * site.no_such_thing

    x = gg.placeholder((2,), name="x")
    with gg.override_gradient(rule):
        return gg.sin(x)


def hostile():
    x = gg.placeholder((2,), name="x")
    with gg.override_gradient(lambda site, dy: dy * 2.0):
        y = gg.sin(x)
    for node in x.graph.nodes:
        node._name = f"a\x1b]0;owned\x07\u202e{node.index}"
    return y


def jax_network(x):
    import jax

    return jax.nn.relu(x) * 3


def jax_program():
    """(fn, args), with parameters."""
    import jax

    weights = {"w": np.array([[1.0, -2.0], [3.0, 4.0]], "float32")}

    def network(p, x):
        return {"y": jax.nn.relu(x @ p["w"]), "none": None}

    return network, (weights, np.array([[1.0, 1.0]], "float32"))


def torch_network():
    """(module, args), in training mode."""
    import torch

    layers = torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2), torch.nn.ReLU()
    return torch.nn.Sequential(*layers), (torch.eye(2),)


def torch_function():
    """(fn, args), of torch for it is given a tensor."""
    import torch

    return lambda x: torch.relu(x) * 2.0, (torch.eye(2),)


def torch_counting():
    import torch

    return torch.nonzero, (torch.eye(2),)


def jax_eigenvalues(x):
    import jax

    return jax.numpy.linalg.eig(x)[0].real


def jax_failing(x):
    raise KeyError("of the user")
