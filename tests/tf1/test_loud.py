"""What TensorFlow does in silence, or says badly, is said here."""

import warnings

import numpy as np
import pytest
from graphgrad.tf1.contrib.crf import crf_decode

import graphgrad.tf1 as tf
from tests.tf1.recorded.saying import fresh


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def rule_of(rule):
    name = fresh("loud")
    tf.RegisterGradient(name)(rule)
    return name


def test_a_misspelt_type_in_a_map_is_a_warning_and_strictly_an_error(graph):
    with (
        pytest.warns(UserWarning, match="'Rellu'.*Did you mean 'Relu'"),
        graph.gradient_override_map({"Rellu": "x"}),
    ):
        tf.nn.relu(1.0)
    with (
        pytest.raises(ValueError, match="'Rellu'"),
        graph.gradient_override_map({"Rellu": "x"}, strict=True),
    ):
        tf.nn.relu(1.0)
    with warnings.catch_warnings(), graph.gradient_override_map({"Sigmoid": "x"}):
        warnings.simplefilter("error")  # a type that there is, and that nothing has: as it is
        tf.nn.relu(1.0)


def test_an_old_type_in_a_map_is_a_warning_where_ops_have_the_new_one(graph):
    x = tf.constant(1.0)
    with (
        pytest.warns(UserWarning, match="'Add'.*'AddV2'"),
        graph.gradient_override_map({"Add": "x"}),
    ):
        x + x
    with warnings.catch_warnings(), graph.gradient_override_map({"Add": "x", "AddV2": "y"}):
        warnings.simplefilter("error")
        x * x


def test_a_name_that_nobody_registered_is_said_with_the_line(graph):
    x = tf.constant(1.0)
    with graph.gradient_override_map({"Tanh": "nobody/knows/it"}):
        y = tf.tanh(x)
    with pytest.raises(LookupError, match=r"'nobody/knows/it'.*test_loud.py"):
        tf.gradients(y, x)


def test_a_gradient_of_another_dtype_is_an_error_and_numbers_are_constants(graph):
    x = tf.constant([1.0, 2.0])
    for rule, found in (
        (lambda op, g: np.array([3.0, 4.0]), [3, 4]),
        (lambda op, g: [[5, 6]], None),
    ):
        with graph.gradient_override_map({"Tanh": rule_of(rule)}):
            y = tf.tanh(x)
        if found is not None:
            (dx,) = tf.gradients(y, x)
            with tf.Session() as s:
                np.testing.assert_array_equal(s.run(dx), found)
    with graph.gradient_override_map({"Tanh": rule_of(lambda op, g: tf.cast(g, tf.float64))}):
        y = tf.tanh(x)
    with pytest.raises(TypeError, match=r"Tanh .*test_loud.py.* dtype float64.*float32"):
        tf.gradients(y, x)


def test_an_error_in_a_rule_names_op_and_rule(graph):
    def broken(op, g):
        raise RuntimeError("oh")

    x = tf.constant(1.0)
    with graph.gradient_override_map({"Tanh": rule_of(broken)}):
        y = tf.tanh(x, name="mine")
    with pytest.raises(RuntimeError, match="oh") as error:
        tf.gradients(y, x)
    assert "in the gradient of Tanh 'mine', built at test_loud.py" in error.value.__notes__[0]
    assert "by 'broken'" in error.value.__notes__[0]


def test_what_is_missing_says_so_when_it_is_used():
    for use, said in (
        (lambda: crf_decode(1), "tf.contrib.crf.crf_decode"),
        (lambda: tf.data.Dataset.from_tensors(1), "NumPy arrays, fed by feed_dict|tf.data"),
        (lambda: tf.reduce_summ(1), "Did you mean tf.reduce_sum"),
        (lambda: tf.keras.Model(), "tf.keras.Model"),
    ):
        with pytest.raises(NotImplementedError, match=said):
            use()
    assert not isinstance(1, tf.keras.Model)


def test_an_error_of_a_run_names_the_op_and_its_line():
    x = tf.placeholder(tf.float32, [None])
    y = tf.reshape(x, [2, 3], name="grid")
    with tf.Session() as s, pytest.raises(tf.errors.InvalidArgumentError) as error:
        s.run(y, {x: np.ones(5)})
    assert "Reshape" in str(error.value)
    assert "built at test_loud.py" in str(error.value)
    assert error.value.op.name == "grid"


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: tf.layers.conv1d(x, 2, 1, data_format="channels_first"), "data_format="),
        (lambda x: tf.layers.conv1d(x, 2, 1, kernel_constraint=abs), "kernel_constraint="),
        (lambda x: tf.layers.flatten(x, data_format="channels_first"), "data_format="),
        (lambda x: tf.contrib.layers.batch_norm(x, renorm=True), "renorm="),
        (lambda x: tf.contrib.layers.fully_connected(x, 2, variables_collections=["c"]), "var"),
        (lambda x: tf.matrix_diag(x, k=1), "k="),
    ],
)
def test_what_would_be_passed_over_is_an_error(call, name):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [3, 4, 5])
        with pytest.raises(NotImplementedError, match=name):
            call(x)
        tf.layers.conv1d(x, 2, 1, data_format="channels_last", kernel_constraint=None)
