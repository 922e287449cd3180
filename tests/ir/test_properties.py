"""What a file says of its model: in words, in plain values for other files, and of which nodes."""

from types import MappingProxyType

import pytest

import graphgrad as gg
from graphgrad.ir.program import derive
from graphgrad.ir.properties import (
    FileOperator,
    ModelProperties,
    properties_of,
    read_properties,
    stored_properties,
)

BARE = ModelProperties("ONNX", 8, {"": 17})
CONV = FileOperator("Conv", MappingProxyType({"pads": (1, 1)}))
FULL = BARE._replace(
    metadata={"task": "classify"}, operators={"c": CONV}, says={"Conv": "It slides."}, doc="cats"
)


def test_what_a_file_does_not_say_is_not_shown():
    assert BARE.rows() == [("format", "ONNX, IR version 8"), ("opsets", "ai.onnx 17")]
    assert (BARE.made_by, BARE.short()) == ("", "ONNX, ai.onnx 17")
    assert BARE._replace(producer="pytorch").made_by == "pytorch"


def test_one_line_is_short_whatever_a_file_says():
    assert len(BARE._replace(producer="a" * 60).short()) == 80
    assert len(BARE._replace(producer="a" * 600).short()) <= 120


def test_nodes_have_the_properties_of_the_first_graph_that_has_some():
    with gg.Graph():
        plain = gg.exp(gg.placeholder((2,)))
    with gg.Graph() as g:
        g.properties = FULL
        x = gg.placeholder((2,))
    derived = derive(plain.node, plain.node.op, (x,))  # of no graph
    assert properties_of([derived, plain.node]) is None
    assert properties_of([derived, plain.node, x.node]) is FULL


def test_plain_values_are_read_as_they_were():
    assert stored_properties(None) == ()
    assert read_properties(()) is None
    stored = stored_properties(FULL)
    assert type(stored[9]["c"][1]) is dict
    again = read_properties(stored)
    assert again == FULL
    assert type(again.operators["c"]) is FileOperator


@pytest.mark.parametrize(
    "wrong",
    [
        7,
        [*stored_properties(FULL)],
        stored_properties(FULL)[:-1],
        (*stored_properties(FULL), {}),
        (1, *stored_properties(FULL)[1:]),
        stored_properties(FULL._replace(metadata={1: "a"})),
        stored_properties(FULL._replace(metadata={"a": 1})),
        stored_properties(FULL._replace(opset={"": "17"})),
        stored_properties(FULL._replace(weights={"w": 1})),
    ],
)
def test_other_values_are_refused(wrong):
    with pytest.raises(gg.FileError, match="of a model"):
        read_properties(wrong)


@pytest.mark.parametrize("operator", [("Conv",), ("Conv", {}, {}), ("Conv", ()), (1, {})])
def test_what_is_no_operator_is_refused(operator):
    stored = stored_properties(FULL)
    with pytest.raises(gg.FileError, match="operator of a file"):
        read_properties((*stored[:9], {"c": operator}, *stored[10:]))
