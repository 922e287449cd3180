"""Rules of JAX in opened functions go where the graph goes: files, copies, batches, exports.

Where they arrive nothing of JAX is needed.
"""

import copy
import pickle
import runpy
import subprocess
import sys
from functools import cache

import numpy as np
import pytest

import graphgrad as gg

from ..each import each

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax


@pytest.fixture(scope="module", autouse=True)
def _sixty_four_bits():
    with jax.enable_x64(True):
        yield


@jax.custom_jvp
def doubled(x):
    return x**2


doubled.defjvps(lambda dx, y, x: 4 * x**2 * dx)


@jax.custom_vjp
def passes_on(x):
    return jnp.sign(x)


passes_on.defvjp(lambda x: (passes_on(x), x), lambda x, g: (jnp.where(jnp.abs(x) < 1, 2 * g, 0.0),))


@jax.custom_vjp
def noisy(key, x):
    return x * jax.random.normal(key, x.shape, x.dtype)


noisy.defvjp(
    lambda key, x: (noisy(key, x), (key, x)),
    lambda kept, g: (None, 3 * g * kept[1] * jax.random.uniform(kept[0], g.shape, g.dtype)),
)


@jax.custom_vjp
def pair(x, n):
    return x * n, jnp.sin(x)


pair.defvjp(lambda x, n: (pair(x, n), x), lambda x, g: (g[0] * x + 5 * g[1], None))


def solved(x):
    a = x @ x.T + jnp.eye(3)
    by = (lambda _, b: jnp.linalg.solve(a, b), lambda _, b: jnp.linalg.solve(a.T, b))
    return lax.custom_linear_solve(lambda y: a @ y, x[0], *by)


def root(x):
    return lax.custom_root(
        lambda y: y**3 - x,
        x,
        lambda f, at: jnp.cbrt(at),
        lambda g, y: y / g(jnp.ones_like(y)),
    )


@jax.custom_vjp
def fixed(p, x):
    def step(carry):
        return jnp.tanh(p * carry[0] + x), carry[1] + 1

    return lax.while_loop(lambda carry: carry[1] < 20, step, (jnp.zeros_like(x), 0))[0]


def fixed_forward(p, x):
    z = fixed(p, x)
    return z, (p, x, z)


def fixed_backward(kept, g):
    p, x, z = kept
    pull = jax.vjp(lambda z: jnp.tanh(p * z + x), z)[1]
    u = lax.fori_loop(0, 20, lambda _, u: g + pull(u)[0], g)
    return jax.vjp(lambda p, x: jnp.tanh(p * z + x), p, x)[1](u)


fixed.defvjp(fixed_forward, fixed_backward)

PROGRAMS = {
    "custom_jvp": (doubled, (3,)),
    "custom_vjp": (passes_on, (3,)),
    "one after the other": (lambda x: doubled(passes_on(x) * x), (3,)),
    "in a scan": (lambda x: lax.scan(lambda c, r: (doubled(c) * 0.3 + r, c), x, x[None])[0], (3,)),
    "in a choice": (lambda x: lax.cond(x[0] < 0, doubled, passes_on, x), (3,)),
    "of a batch": (jax.vmap(doubled), (3,)),
    "with a key": (lambda x: noisy(jax.random.key(1), x) * x, (3,)),
    "two results": (lambda x: jnp.stack(pair(x, jnp.arange(3))), (3,)),
    "custom_linear_solve": (solved, (3, 3)),
    "custom_root": (root, (3,)),
    "equilibrium": (lambda x: fixed(0.3 * x, x), (3,)),
}


def array_of(shape):
    return np.random.default_rng(0).normal(size=shape)


def both_orders(x, y, **options):
    (first,) = gg.gradients([gg.sum(y * y)], [x], **options)
    (second,) = gg.gradients([gg.sum(first * first)], [x], unconnected="zero", **options)
    return [y, first, second]


def at(graph):
    return graph.tensor("x:0"), graph.tensor("y:0")


@cache
def world(name):
    """The graph of a program, and its value and gradients there."""
    fn, shape = PROGRAMS[name]
    with gg.Graph() as graph:
        x = gg.placeholder(shape, name="x")
        gg.identity(gg.interop.open_jax(fn, x), name="y")
    return graph, values_of(graph.copy(), shape)


def values_of(graph, shape, **options):
    with graph:
        x, y = at(graph)
        return gg.compile(x, both_orders(x, y, **options), backend="numpy")(array_of(shape))


def compared(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, 1e-12, 1e-12)


@each([(name, name) for name in PROGRAMS])
def test_S27_S44_the_rule_is_in_copies_and_pickles(name):
    (graph, wanted), (_, shape) = world(name), PROGRAMS[name]
    compared(values_of(copy.deepcopy(graph), shape), wanted)
    compared(values_of(pickle.loads(pickle.dumps(graph)), shape), wanted)


@each([(name, name) for name in PROGRAMS])
def test_S27_S44_the_rule_is_in_a_batch(name):
    (_, wanted), (fn, shape) = world(name), PROGRAMS[name]
    array = array_of(shape)
    with gg.Graph():
        xs = gg.placeholder((2, *shape))
        mapped = gg.vmap(lambda x: both_orders(x, gg.interop.open_jax(fn, x)))(xs)
        of_batch = both_orders(xs, gg.vmap(lambda x: gg.interop.open_jax(fn, x))(xs))
        for made in gg.compile(xs, [mapped, of_batch], backend="numpy")(np.stack([array, -array])):
            compared([y[0] for y in made], wanted)


@pytest.mark.ci
@each([(name, name) for name in PROGRAMS])
def test_S27_S44_the_rule_is_in_what_is_exported_as_numpy(name, tmp_path):
    (graph, wanted), (_, shape) = world(name), PROGRAMS[name]
    with graph.copy() as there:
        x, y = at(there)
        f = gg.compile(x, both_orders(x, y))
    gg.export_numpy(f, tmp_path / "f.py")
    compared(runpy.run_path(str(tmp_path / "f.py"))["f"](array_of(shape)), wanted)


@pytest.mark.ci
@each([(name, name) for name in PROGRAMS])
def test_S27_S44_the_rule_is_in_what_is_exported_to_onnx(name, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    (graph, wanted), (_, shape) = world(name), PROGRAMS[name]
    with graph.copy() as there:
        x, y = at(there)
        f = gg.compile(x, both_orders(x, y))
    gg.onnx.export(f, tmp_path / "f.onnx")
    session = runtime.InferenceSession(tmp_path / "f.onnx", providers=["CPUExecutionProvider"])
    found = session.run(None, {session.get_inputs()[0].name: array_of(shape)})
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, 1e-9, 1e-12)


ELSEWHERE = """
import sys
sys.modules["jax"] = None
import numpy as np, pickle, graphgrad as gg
for path in sys.argv[1:]:
    graph = gg.load(path).graph
    z = np.load(path + ".npz")
    for options in ({}, {"overrides": "none"}):
        for there in (graph.copy(), pickle.loads(pickle.dumps(graph))):
            with there:
                x, y = there.tensor("x:0"), there.tensor("y:0")
                first = gg.gradients(gg.sum(y * y), x, **options)
                second = gg.gradients(gg.sum(first * first), x, unconnected="zero", **options)
                made = gg.compile(x, [y, first, second], backend="numpy")(z["x"])
            for i, value in enumerate(made):
                np.testing.assert_allclose(value, z[f"{len(options)}{i}"], 1e-12, 1e-12)
print(len(sys.argv) - 1)
"""


def test_S32_S44_a_file_needs_no_jax(tmp_path):
    paths = []
    for i, (name, (_, shape)) in enumerate(PROGRAMS.items()):
        graph, wanted = world(name)
        plain = values_of(graph.copy(), shape, overrides="none")
        path = tmp_path / f"{i}.gg"
        gg.save(path, graph)
        every = {f"{k}{j}": v for k, vs in enumerate((wanted, plain)) for j, v in enumerate(vs)}
        np.savez(f"{path}.npz", x=array_of(shape), **every)
        paths.append(str(path))
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, *paths], capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.stderr) == (str(len(PROGRAMS)), "")


def test_S27_S44_open_lengths_and_marks_go_along(tmp_path):
    with gg.Graph() as graph:
        x = gg.placeholder(("N", 3), name="x")
        gg.identity(gg.interop.open_jax(lambda x: doubled(jax.nn.relu(x)) + x, x), name="y")
        graph.mark(gg.select.op("Relu"), gg.rules.guided())
    gg.save(tmp_path / "f.gg", graph)
    for there in (gg.load(tmp_path / "f.gg").graph, graph):
        found = values_of(there, (5, 3))
        if there is not graph:
            first = found
    compared(first, found)


def test_S32_S44_a_rule_that_has_no_form_is_said_when_the_graph_is_saved(tmp_path):
    @jax.custom_vjp
    def printing(x):
        return x * 2

    def backward(_, g):
        jax.debug.print("{}", g)
        return (g,)

    printing.defvjp(lambda x: (printing(x), None), backward)
    with gg.Graph() as graph:
        x = gg.placeholder((3,), name="x")
        gg.interop.open_jax(printing, x)
        with pytest.raises(gg.GraphError, match=r"(?s)no form.*debug") as caught:
            gg.save(tmp_path / "f.gg", graph)
    assert any("tracing the rule of" in note for note in caught.value.__notes__)
    assert not (tmp_path / "f.gg").exists()
