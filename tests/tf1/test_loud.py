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


def test_a_tensor_that_a_custom_gradient_reads_from_outside_is_said(graph):
    x, w = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    y = 3.0 * x

    def through(read):
        return tf.custom_gradient(lambda p: (p * read, lambda dy: 10.0 * dy))

    for outside, wanted in ((w, [w]), (y, x)):
        with pytest.warns(UserWarning, match=r"test_loud.py:\d+ reads .*not an argument"):
            tf.gradients(through(outside)(x), wanted)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tf.gradients(through(w)(x), x)  # w has nothing to do with x
        stopped = tf.custom_gradient(lambda p: (p * tf.stop_gradient(y), lambda dy: dy))
        tf.gradients(stopped(x), x)
        v = tf.get_variable("v", initializer=[1.0, 1.0])

        def grad(dy, variables=None):
            return dy, [dy]

        assert tf.gradients(tf.custom_gradient(lambda p: (p * v, grad))(x), [v])[0] is not None


def test_a_gradient_of_another_shape_than_its_input_is_an_error_of_the_run(graph):
    x = tf.placeholder_with_default(np.array([1.0, -2.0], "float32"), [None])
    for size in (2, 3):
        name = rule_of(lambda op, dy, n=size: tf.ones([n]))
        with graph.gradient_override_map({"Relu": name}):
            y = tf.nn.relu(x, name=f"of_{size}")
        dx = tf.gradients(y, x)[0]
        assert not [op for op in graph.get_operations() if op.type == "EnsureShape"]
        with tf.Session() as s:
            if size == 2:
                np.testing.assert_array_equal(s.run(dx), [1, 1])
                continue
            said = r"Relu 'of_3' \(built at test_loud.py:\d+\) for input 0 has shape \(3,\)"
            with pytest.raises(tf.errors.InvalidArgumentError, match=said):
                s.run(dx)
    custom = tf.custom_gradient(lambda p: (2.0 * p, lambda dy: tf.ones([3])))
    with tf.Session() as s, pytest.raises(tf.errors.InvalidArgumentError, match="has shape"):
        s.run(tf.gradients(custom(x), x)[0])


def test_a_map_around_no_op_at_all_is_a_warning(graph):
    x = tf.constant([1.0, -2.0])
    with (
        pytest.warns(UserWarning, match="no op was made in the block.*'Relu'"),
        graph.gradient_override_map({"Relu": rule_of(lambda op, dy: 9.0 * dy)}),
    ):

        def late():
            return tf.nn.relu(x)

    with (
        pytest.raises(ValueError, match="no op was made"),
        graph.gradient_override_map({"Relu": "x"}, strict=True),
    ):
        pass
    assert late().op.type == "Relu"


def test_grad_ys_that_are_broadcast_are_said(graph):
    x = tf.constant([1.0, 2.0])
    with pytest.warns(UserWarning, match=r"grad_ys\[0\] has shape \(\), y \(2,\)"):
        (dx,) = tf.gradients(x * x, x, grad_ys=tf.constant(10.0))
    with tf.Session() as s:
        np.testing.assert_array_equal(s.run(dx), [20, 40])
