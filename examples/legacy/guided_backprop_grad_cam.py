"""What a network looks at: guided backpropagation, the deconvolution network and Grad-CAM.

The two maps are per op type: the network is read again from its GraphDef inside the block
[Springenberg et al. 2014; Zeiler and Fergus 2013; Selvaraju et al. 2016].
"""

import numpy as np
from graphgrad.tf1.python.framework import ops
from graphgrad.tf1.python.ops import gen_nn_ops

import graphgrad.tf1 as tf


@ops.RegisterGradient("GuidedRelu")
def _guided_relu(op, grad):
    return tf.where(grad > 0.0, gen_nn_ops.relu_grad(grad, op.outputs[0]), tf.zeros_like(grad))


@tf.RegisterGradient("DeconvRelu")
def _deconv_relu(op, grad):
    return tf.nn.relu(grad)


def numbers(seed, *shape):
    return tf.constant(np.random.RandomState(seed).randn(*shape) * 0.4, tf.float32)


def network():
    """A small network of two convolutions; its tensors are found by name."""
    x = tf.placeholder(tf.float32, [None, 8, 8, 1], name="images")
    h = tf.nn.relu(tf.nn.conv2d(x, numbers(0, 3, 3, 1, 4), [1, 1, 1, 1], "SAME"))
    h = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    h = tf.nn.conv2d(h, numbers(1, 3, 3, 4, 6), [1, 1, 1, 1], "SAME", name="last_conv")
    h = tf.nn.bias_add(tf.nn.relu(h), tf.constant([0.1] * 6))
    flat = tf.reshape(h, [-1, 4 * 4 * 6])
    tf.matmul(flat, numbers(2, 96, 3), name="logits")


def saliency(graph_def, override):
    """The gradient of the first class with respect to the images."""
    with tf.Graph().as_default() as graph:
        with graph.gradient_override_map({"Relu": override}):
            tf.import_graph_def(graph_def, name="")
        x, logits = (graph.get_tensor_by_name(n) for n in ("images:0", "logits:0"))
        (map_,) = tf.gradients(logits[:, 0], x)
        with tf.Session(graph=graph) as session:
            return session.run(map_, {x: images})


def grad_cam(graph_def):
    """Maps of the last convolution, weighted by the mean of their gradients."""
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        conv, logits = (graph.get_tensor_by_name(n) for n in ("last_conv:0", "logits:0"))
        (grads,) = tf.gradients(logits[:, 0], conv)
        norm = tf.divide(grads, tf.sqrt(tf.reduce_mean(tf.square(grads))) + 1e-5)
        weights = tf.reduce_mean(norm, axis=[1, 2], keepdims=True)
        cam = tf.nn.relu(tf.reduce_sum(weights * conv, axis=3))
        with tf.Session(graph=graph) as session:
            return session.run(cam, {"images:0": images})


images = np.random.RandomState(3).rand(2, 8, 8, 1)
with tf.Graph().as_default() as built:
    network()
definition = built.as_graph_def()
maps = {name: saliency(definition, name) for name in ("Relu", "GuidedRelu", "DeconvRelu")}
for name, values in maps.items():
    print(f"{name}: norm {np.linalg.norm(values):.5f}, corner {values[0, 0, 0, 0]:.5f}")
cam = grad_cam(definition)
print(f"Grad-CAM: {cam.shape}, sum {cam.sum():.5f}, highest at {np.argmax(cam[0])}")
assert len({round(float(np.linalg.norm(m)), 3) for m in maps.values()}) == 3, "each its own map"
