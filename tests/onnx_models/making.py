"""Small models of ONNX, made by the package onnx."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
node, info = onnx.helper.make_node, onnx.helper.make_tensor_value_info
FLOAT, INT64, BOOL = 1, 7, 9


def stored(name, array):
    return onnx.numpy_helper.from_array(np.asarray(array), name)


def values(shapes, dtype=FLOAT):
    return [info(name, dtype, shape) for name, shape in shapes.items()]


def graph_of(nodes, inputs, outputs, weights=None):
    """A graph; outputs of unknown shape where only named."""
    found = dict.fromkeys(outputs) if isinstance(outputs, str | list) else outputs
    ins = [v for shapes in inputs for v in values(*shapes)] if isinstance(inputs, list) else None
    initial = [stored(name, array) for name, array in (weights or {}).items()]
    outs = [info(name, FLOAT, shape) for name, shape in found.items()]
    return onnx.helper.make_graph(nodes, "g", ins or values(inputs), outs, initial)


def model_of(nodes, inputs, outputs, weights=None, opset=21, functions=(), domains=()):
    """A model of a graph."""
    versions = [onnx.helper.make_opsetid(d, v) for d, v in (("", opset), *domains)]
    graph = graph_of(nodes, inputs, outputs, weights)
    return onnx.helper.make_model(
        graph, opset_imports=versions, functions=list(functions), ir_version=10
    )


def mlp(rng):
    """relu(x @ w + b) @ v with scoped names, and its weights."""
    weights = {
        "fc1.weight": rng.normal(size=(3, 16)).astype("float32"),
        "fc1.bias": rng.normal(size=(16,)).astype("float32"),
        "fc2.weight": rng.normal(size=(16, 2)).astype("float32"),
    }
    nodes = [
        node("Gemm", ["x", "fc1.weight", "fc1.bias"], ["h"], name="/body/fc1/Gemm"),
        node("Relu", ["h"], ["a"], name="/body/act/Relu"),
        node("MatMul", ["a", "fc2.weight"], ["y"], name="/head/MatMul_0"),
    ]
    return model_of(nodes, {"x": ["N", 3]}, ["y"], weights), weights
