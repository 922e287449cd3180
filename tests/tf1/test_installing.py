"""`import tensorflow` of old programs; names that are not there say what to write instead."""

import importlib
import inspect
import pickle
import sys
from types import ModuleType

import numpy as np
import pytest

import graphgrad.tf1 as tf
from graphgrad.__main__ import main

PROGRAM = """
import sys
import tensorflow as tf
import tensorflow.compat.v1 as v1
import tensorflow.contrib.slim as slim
from tensorflow.contrib.layers import xavier_initializer
from tensorflow.examples.tutorials.mnist import input_data
from tensorflow.keras import layers
from tensorflow.python.framework import ops
from tensorflow.python.ops import gen_nn_ops, nn_grad
from helper import scale


@ops.RegisterGradient("Doubled" + sys.argv[1])
def doubled(op, dy):
    return 2.0 * gen_nn_ops.relu_grad(dy, op.outputs[0])


x = tf.constant([1.0, -1.0])
with v1.get_default_graph().gradient_override_map({"Relu": "Doubled" + sys.argv[1]}):
    y = tf.nn.relu(scale * x)
with tf.Session() as session:
    print(__name__, sys.argv[1:], session.run(tf.gradients(y, x)[0]), slim.__name__)
sys.exit(7)
"""


def test_imports_of_tensorflow_are_of_tf1_until_the_end_of_the_block():
    with tf.install() as first, tf.install() as again:
        assert first is again
        for name, own in {
            "tensorflow": tf,
            "tensorflow.compat.v1": tf,
            "tensorflow.nn": tf.nn,
            "tensorflow.python.framework.ops": tf.python.framework.ops,
            "tensorflow.contrib.slim": tf.contrib.slim,
            "tensorflow.compat": tf.compat,
        }.items():
            assert importlib.import_module(name) is own
        for name in ("convolutional", "core", "layers", "normalization", "pooling"):
            module = importlib.import_module(f"tensorflow.python.layers.{name}")
            assert module.conv2d is tf.layers.conv2d
        absent = importlib.import_module("tensorflow.keras.layers")
        with pytest.raises(NotImplementedError, match=r"tf\.keras\.layers\.Dense"):
            absent.Dense(3)
        assert tf.compat.as_bytes("a") == b"a"
    tf.uninstall()
    assert not [name for name in sys.modules if name.startswith("tensorflow")]
    assert "keras" not in vars(tf)
    assert tf.__spec__.name == tf.__name__ == "graphgrad.tf1"


def test_tensorflow_itself_is_never_replaced(monkeypatch):
    real = ModuleType("tensorflow")
    real.__file__ = "site-packages/tensorflow/__init__.py"
    monkeypatch.setitem(sys.modules, "tensorflow", real)
    with pytest.raises(RuntimeError, match=r"already imported, from site-packages.*install\(\)"):
        tf.install()
    assert sys.modules["tensorflow"] is real


def test_a_module_of_that_name_without_a_file_is_not_replaced_either(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", ModuleType("tensorflow"))
    with pytest.raises(RuntimeError, match="already imported, from no file: call"):
        tf.install()


@pytest.mark.parametrize("name", ["numba", "graphgrad.tf1.nnx", None])
def test_what_a_module_itself_lacks_is_an_error_and_no_missing_name(name, monkeypatch):
    def lacking(_):
        raise ModuleNotFoundError("there is none", name=name)

    monkeypatch.setattr("graphgrad.tf1.installing.import_module", lacking)
    with tf.install(), pytest.raises(ModuleNotFoundError, match="there is none"):
        importlib.import_module("tensorflow.nn.rnn_cell")


@pytest.mark.usefixtures("own_gradients")
def test_a_program_runs_by_the_command(tmp_path, capsys):
    (tmp_path / "helper.py").write_text("scale = 3.0\n")
    (tmp_path / "old.py").write_text(PROGRAM)
    path, argv = list(sys.path), sys.argv
    with tf.Graph().as_default(), pytest.raises(SystemExit) as end:
        main(["tf1", str(tmp_path / "old.py"), "--quick", "-n", "2"])
    assert end.value.code == 7
    said = "__main__ ['--quick', '-n', '2'] [6. 0.] graphgrad.tf1.contrib.slim"
    assert said in capsys.readouterr().out
    assert (sys.path, sys.argv) == (path, argv)
    sys.modules.pop("helper")


def test_what_a_program_raises_is_shown_and_a_missing_one_is_said(tmp_path, capsys):
    (tmp_path / "old.py").write_text("import tensorflow as tf\ntf.nn.ctc_loss(1)\n")
    assert main(["tf1", str(tmp_path / "old.py")]) == 3
    said = capsys.readouterr().err
    assert "old.py raised NotImplementedError" in said
    assert 'old.py", line 2' in said
    assert "graphgrad.nn.ctc_loss" in said
    assert main(["tf1", str(tmp_path / "none.py")]) == 2
    assert "there is no program" in capsys.readouterr().err


def test_a_missing_name_says_so_in_every_module():
    for path in (
        "nn.ctc_loss", "nn.max_pool_with_argmax", "nn.rnn_cell.GLSTMCell", "train.batch",
        "train.AdagradDAOptimizer", "losses.sparse_hinge", "image.resize_bicubic",
        "layers.SeparableConv1D", "linalg.eigh_tridiagonal", "math.cumulative_logsumexp",
        "summary.FileWriterX", "test.mock", "initializers.local", "random.stateless_uniform",
        "bitwise.population_count", "contrib.layers.embed_sequence",
        "contrib.rnn.LayerNormBasicLSTMCell", "contrib.seq2seq.BasicDecoder",
        "python.ops.nn_ops.quantized_conv2d", "python.framework.ops.EagerTensor",
    ):  # fmt: skip
        found = tf
        for part in path.split("."):
            found = getattr(found, part)
        with pytest.raises(NotImplementedError, match=rf"tf\.{path}\."):
            found(1)
    with pytest.raises(NotImplementedError, match=r"Did you mean tf\.nn\.softmax\?"):
        tf.nn.softmaxx(1)


def test_protocols_of_python_see_no_names_that_are_not_there():
    for module in (tf, tf.nn, tf.contrib.rnn, tf.python.ops.nn_ops, tf.bitwise):
        for name in ("__wrapped__", "__array__", "_repr_html_", "__setstate__"):
            assert not hasattr(module, name)
        assert inspect.getmodule(module) is module
        assert "ctc_loss" not in dir(module)
        assert inspect.unwrap(module) is module
    assert pickle.loads(pickle.dumps(tf.float32)) is tf.float32
    assert np.asarray(tf.nn, dtype=object).shape == ()
