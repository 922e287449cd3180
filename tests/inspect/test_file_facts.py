"""A page of a model from a file says what the file says, beside what graphgrad makes of it."""

from __future__ import annotations

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.properties import FileOperator, ModelProperties

from .chromium import PROGRAM
from .pages import model_in
from .seeing import labels, parsed
from .test_operators import read

HOSTILE = "</script><b>\u202e"
SAID = ModelProperties(
    "ONNX",
    8,
    {"": 17, "com.acme": 1},
    "acme",
    "2.1",
    doc="finds cats",
    metadata={"task": "classify", HOSTILE: HOSTILE},
    operators={
        "fc/Gemm": FileOperator("Gemm", {"transB": 1, "alpha": 0.5, "axes": (1, 2)}),
        "act/Relu": FileOperator("Relu"),
    },
    says={"Gemm": "General Matrix multiplication"},
    weights={"fc.w_0": "B", "fc.bias": "C"},
)


def loaded(said=SAID):
    """A dense layer as a loader builds it, of a file that says so."""
    graph = gg.Graph("net")
    graph.properties = said
    with graph:
        x = gg.placeholder(("N", 4), "float32", name="x")
        w = gg.constant(np.ones((2, 4), "float32"), name="fc.w_0")
        b = gg.constant(np.ones(2, "float32"), name="fc.bias")
        turned = read("fc/Gemm", gg.transpose, w, name=False)
        product = read("fc/Gemm", gg.matmul, x, turned, name=False)
        h = read("fc/Gemm", gg.add, product, b)
        return read("act/Relu", gg.nn.relu, h)


def test_the_page_knows_the_file():
    y = loaded()
    page = model_in(gg.to_html([y, gg.gradients(y, y.graph.tensor("x:0"))]))
    file = page["file"]
    assert dict(file["rows"])["producer"] == "acme 2.1"
    assert dict(file["metadata"])["task"] == "classify"
    assert file["operators"] == [
        ["Gemm", "transB = 1\nalpha = 0.5\naxes = [1, 2]", "General Matrix multiplication"],
        ["Relu", "", ""],
    ]
    names = [page["strings"][i] if i >= 0 else "" for i in page["nodes"][1]]
    of_node = {names[int(row)]: place for row, place in file["nodes"].items() if names[int(row)]}
    assert of_node == {"fc/Gemm": 0, "act/Relu": 1}
    assert len(file["nodes"]) == 4  # with the Transpose and the MatMul of Gemm
    assert {names[int(row)]: word for row, word in file["weights"].items()} == {"fc.w_0": "B"}
    assert page["frames"][0]["parameters"] == [10, 40]
    assert len(page["frames"][0]["files"]) == 2  # the box of Gemm, and that of its gradient


def test_graphs_of_no_file_have_none_of_it():
    y = loaded(None)
    page = model_in(gg.to_html(y))
    assert page["file"] is None
    assert page["frames"][0]["parameters"] == [0, 0]
    assert "ONNX" not in gg.to_dot(y)
    assert gg.summary(y).total.parameters == 0


def test_a_weight_is_called_by_its_own_name_if_that_is_a_word():
    y = loaded()
    (box,) = [row for row in labels(parsed(gg.to_dot(y))).values() if row.startswith("fc/Gemm")]
    assert box.split("\n")[2:] == ["B f32[2,4]", "bias f32[2]"]


def test_the_legend_of_dot_says_what_the_file_is():
    dot = gg.to_dot(loaded())
    assert "ONNX by acme 2.1, ai.onnx 17, com.acme 1, 10 parameters" in dot


def texts(browser, selector):
    return browser.do(f"[...document.querySelectorAll({selector!r})].map((e) => e.innerText)")


@pytest.mark.browser
@pytest.mark.skipif(PROGRAM is None, reason="no chromium on the PATH")
def test_the_panel_says_it(opened):
    page = opened(loaded())
    (panel,) = texts(page, "#panel")
    for said in ("10, 40 B", "ONNX, IR version 8", "ai.onnx 17, com.acme 1", "acme 2.1", "cats"):
        assert said in panel
    assert "metadata: 2 entries" in panel
    page.do("document.querySelector('#panel details summary').click()")
    (panel,) = texts(page, "#panel")
    assert "classify" in panel
    assert "</script><b>\\u202e" in panel
    page.click('#picture .item[aria-label^="fc/Gemm"]')
    (panel,) = texts(page, "#panel")
    for said in ("ONNX operator", "Gemm", "General Matrix", "transB = 1", "axes = [1, 2]"):
        assert said in panel
    assert page.complaints() == []


def test_long_lengths_are_left_out_of_types_on_edges():
    with gg.Graph():
        long, short = gg.placeholder(("p2o.DynamicDimension.0", 3, "N", 4)), "f64[...,3,N,4]"
        y = gg.exp(gg.tanh(long))
        z = gg.exp(gg.placeholder(("batch_of_pictures", 2)))
    assert f'label="{short}"' in gg.to_dot(y)
    assert 'label="f64[batch_of_pictures,2]"' in gg.to_dot(z)
