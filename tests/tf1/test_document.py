"""docs/tf1.md lists what is there."""

import importlib.util
import re
from pathlib import Path

import pytest

import graphgrad.tf1 as tf

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "tf1.md"


def test_the_lists_are_up_to_date():
    spec = importlib.util.spec_from_file_location("tf1_doc", ROOT / "tools" / "tf1_doc.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    text = tool.DOCUMENT.read_text()
    assert tool.written(text) == text, "python tools/tf1_doc.py --write"


@pytest.mark.usefixtures("own_gradients")
def test_the_example_runs(capsys):
    """A negative gradient does not pass, where the unit is active too."""
    names = {}
    with tf.Graph().as_default():
        for block in re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL):
            exec(compile(block, str(DOCUMENT), "exec"), names)
        through = tf.gradients(-names["y"], names["x"])[0]
        with tf.Session() as session:
            assert not session.run(through, {names["x"]: [[1.0, -1.0]]}).any()
    assert "[[ 1. -0.]]" in capsys.readouterr().out


@pytest.mark.usefixtures("own_gradients")
def test_a_rule_that_calls_itself_is_told_of_once():
    tf.RegisterGradient("Endless")(lambda op, dy: tf.gradients(op.outputs, op.inputs, dy))
    with tf.Graph().as_default() as graph, graph.gradient_override_map({"Relu": "Endless"}):
        x = tf.placeholder(tf.float32)
        y = tf.nn.relu(x)
        with pytest.raises(RecursionError) as caught:
            tf.gradients(y, x)
    assert sum("'Relu'" in note for note in caught.value.__notes__) == 1
