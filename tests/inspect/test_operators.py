"""Models of files: one box for each operator, with its weights in it."""

from __future__ import annotations

import numpy as np

import graphgrad as gg
from graphgrad.inspect.scene.view import view_of
from graphgrad.onnx.loading.names import rename

from .seeing import edges, labels, parsed


def read(path, function, *inputs, name=True):
    """What a loader builds, on one line, in the scope of an operator; the last has its name."""
    with gg.name_scope(path):
        made = function(*inputs)
    if name:
        rename(made, path)
    return made


def loaded(layers):
    """A model of dense layers."""
    graph = gg.Graph("net")
    with graph:
        h = gg.placeholder(("N", 4), "float32", name="x")
        for i in range(layers):
            w = gg.constant(np.ones((4, 4), "float32"), name=f"fc{i}.weight")
            b = gg.constant(np.ones(4, "float32"), name=f"fc{i}.bias")
            path = f"fc{i}/Gemm"
            turned = read(path, gg.transpose, w, name=False)
            product = read(path, gg.matmul, h, turned, name=False)
            h = read(path, gg.add, product, b)
            h = read(f"act{i}/Relu", gg.nn.relu, h)
    return graph, h


def test_an_operator_is_one_box_and_its_weights_are_rows_of_it():
    _, y = loaded(2)
    graph = parsed(gg.to_dot(y))
    shown = sorted(row.split("\n")[:4] for row in labels(graph).values())
    assert ["fc0/Gemm", "Transpose, MatMul, Add", "weight f32[4,4]", "bias f32[4]"] in shown
    assert not any("fc0.weight" in row[0] for row in shown)
    assert len(shown) == 5
    assert all("f32[N,4]" in edge.get("label") for edge in edges(graph))


def test_opened_a_weight_stands_on_the_node_that_reads_it():
    _, y = loaded(1)
    rows = labels(parsed(gg.to_dot(y, collapse="none"))).values()
    assert any(row.startswith("Transpose_") and "weight f32[4,4]" in row for row in rows)
    assert not any(row.startswith("fc0.weight") for row in rows)


def test_the_gradient_of_an_operator_is_a_box_beside_it():
    graph, y = loaded(2)
    with graph:
        dx = gg.gradients(y, graph.tensor("x:0"))
    view = view_of([y, dx])
    boxes = [box for box in view.collapsed if view.is_operator(box)]
    assert sorted((box.title, box.column) for box in boxes) == [
        *(("fc0/Gemm", column) for column in (0, 1)),
        *(("fc1/Gemm", column) for column in (0, 1)),
    ]
    assert {view.mirror[box].title for box in boxes if box.column} == {"fc0/Gemm", "fc1/Gemm"}


def test_the_line_that_built_all_is_not_on_every_node():
    for layers, told in ((2, True), (6, False)):
        _, y = loaded(layers)
        rows = labels(parsed(gg.to_dot(y))).values()
        relus = [row for row in rows if row.startswith("act")]
        assert [row.partition("\n")[0] for row in relus] == [f"act{i}/Relu" for i in range(layers)]
        assert all(("test_operators.py" in row) is told for row in relus)


def test_a_scope_of_a_user_is_no_operator():
    with gg.Graph():
        x = gg.placeholder((2,), name="x")
        with gg.name_scope("layer"):
            h = gg.exp(gg.identity(x, name="inner"))
        y = gg.identity(h, name="layer")
    assert view_of(y).operators == {}
