"""What cases are written with: the same under TensorFlow and under graphgrad.tf1."""

from importlib import import_module
from itertools import count

_numbers = count(1)


class Raised:
    """What a call raised: its class with all its bases, and which keywords its message has."""

    def __init__(self, error, keywords):
        self.classes = [c.__name__ for c in type(error).__mro__]
        self.says = {k: k.lower() in str(error).lower() for k in keywords}


def error_of(call, *keywords):
    """What a call raises, or its result if it raises nothing."""
    try:
        return call()
    except Exception as error:
        return Raised(error, keywords)


def fresh(name):
    """A name that no registry has seen: cases may run twice in one process."""
    return f"{name}_{next(_numbers)}"


def inner(tf, path):
    """A module of the tree below `tensorflow.python`, or what stands for it."""
    home = "tensorflow" if tf.__name__.startswith("tensorflow") else tf.__name__
    return import_module(f"{home}.python.{path}")


def registered(tf, rule, name="Rule"):
    """The fresh name under which a rule is registered."""
    name = fresh(name)
    tf.RegisterGradient(name)(rule)
    return name


def mapped(tf, types):
    """`gradient_override_map` of the current graph."""
    return tf.get_default_graph().gradient_override_map(types)


def run(tf, fetches, feeds=None):
    """The values of fetches in a new session, after all variables were initialized."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


def values(tf, tensors, feeds=None):
    """The values of a dict of tensors; what is None stays None."""
    known = {name: t for name, t in tensors.items() if t is not None}
    return {**dict.fromkeys(tensors), **run(tf, known, feeds)}


def types(graph_or_ops):
    """The types of all ops of a graph, or of these ops, in the order in which they were built."""
    ops = getattr(graph_or_ops, "get_operations", lambda: graph_or_ops)()
    return [op.type for op in ops]


def shape_of(tensor):
    """The static shape as a list, or None where the rank is unknown."""
    shape = tensor.get_shape()
    return None if shape.ndims is None else shape.as_list()
