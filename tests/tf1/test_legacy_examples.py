"""Old programs run by the import alone, and print what they print under TensorFlow."""

import runpy

import pytest

import graphgrad.tf1 as tf
from tests.tf1.recorded.running import EXAMPLES, LEGACY, printed_by, same_figures


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.usefixtures("own_gradients")
def test_prints_the_figures_of_tensorflow(example, capsys):
    with tf.Graph().as_default():
        runpy.run_path(str(LEGACY / f"{example}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert same_figures(printed_by(example), printed), printed


@pytest.mark.parametrize("example", EXAMPLES)
def test_reads_well(example):
    text = (LEGACY / f"{example}.py").read_text()
    assert text.startswith('"""'), "says its idea first"
    assert "assert" in text, "claims nothing"
    assert len(text.splitlines()) <= 80


def test_figures_that_differ_are_not_the_same():
    assert same_figures("loss 0.50001, 3 steps", "loss 0.50002, 3 steps")
    assert not same_figures("loss 0.5, 3 steps", "loss 0.51, 3 steps")
    assert not same_figures("loss 0.5, 3 steps", "loss 0.5, 3 runs")
