"""Sites of tensors on programs of others, and in what is exported of their gradients."""

import runpy

import numpy as np
import pytest

import graphgrad as gg

LIMIT = 0.1


def clip(graph):
    tensors = gg.select.variables() if graph.variables else gg.select.inputs("[wvb]")
    graph.mark(tensors, gg.rules.clip_global_norm(LIMIT), together=True)


def test_S44_S46_parameters_of_a_module():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    x = torch.randn(5, 3)
    gg.interop.retrofit(net, clip)(x).sum().backward()
    found = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    net(x).sum().backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), LIMIT)
    for p, dp in zip(net.parameters(), found, strict=True):
        torch.testing.assert_close(dp, p.grad, atol=1e-6, rtol=1e-4)  # it adds 1e-6 to the norm


def test_S44_S46_parameters_of_a_function_of_jax():
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def loss(params, x):
        return jnp.sum(jnp.tanh(x @ params["w"]) @ params["v"] + params["b"])

    params = {"w": jnp.full((3, 2), 0.3), "v": jnp.ones(2), "b": jnp.zeros(())}
    x = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")
    found = jax.jit(jax.grad(gg.interop.retrofit(loss, clip)))(params, x)
    plain = jax.grad(loss)(params, x)
    norm = np.sqrt(sum(float((d**2).sum()) for d in plain.values()))
    for name, dp in plain.items():
        np.testing.assert_allclose(found[name], dp * LIMIT / norm, rtol=1e-5, atol=1e-7)


def network():
    x = gg.placeholder((2, 3), "float32", name="x")
    w = gg.variable(np.arange(6, dtype="float32").reshape(3, 2) / 7, name="w")
    b = gg.variable(np.float32(0.3), name="b")
    h = gg.tanh(x @ w + b)
    return x, [w, b], gg.sum(h * h)


def test_S46_the_gradient_as_a_file_of_numpy(tmp_path):
    x, xs, y = network()
    clip(y.graph)
    f = gg.compile(x, gg.gradients(y, xs))
    path = tmp_path / "slopes.py"
    gg.export_numpy(f, path, name="slopes")
    at = np.ones((2, 3), "float32")
    for a, b in zip(runpy.run_path(str(path))["slopes"](at), f(at), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    assert np.sqrt(sum((np.asarray(d) ** 2).sum() for d in f(at))) == pytest.approx(LIMIT, 1e-5)


def test_S46_the_gradient_in_onnx(tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    x, xs, y = network()
    clip(y.graph)
    f = gg.compile(x, gg.gradients(y, xs))
    path = tmp_path / "slopes.onnx"
    gg.onnx.export(f, path)
    at = np.ones((2, 3), "float32")
    session = runtime.InferenceSession(str(path))
    for a, b in zip(session.run(None, {session.get_inputs()[0].name: at}), f(at), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_S44_S46_a_model_of_onnx(tmp_path):
    pytest.importorskip("onnx")
    x, xs, y = network()
    path = tmp_path / "model.onnx"
    gg.onnx.export(gg.compile(x, y), path)
    model = gg.onnx.load(path, trainable=["w", "b"])
    (loss,) = model.outputs.values()
    weights = model.graph.variables.trainable
    assert len(weights) == 2
    model.graph.mark(gg.select.variables(), gg.rules.clip_global_norm(LIMIT), together=True)
    with model.graph:
        dws = gg.compile(list(model.inputs.values()), gg.gradients(loss, list(weights)))
    found = dws(np.ones((2, 3), "float32"))
    clip(y.graph)
    wanted = gg.compile(x, gg.gradients(y, xs))(np.ones((2, 3), "float32"))
    for a, b in zip(sorted(found, key=np.size), sorted(wanted, key=np.size), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4)
