"""Programs that others wrote, opened: values and all gradients are those of JAX in float64."""

import os
from importlib import import_module
from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
import pytest

import graphgrad as gg

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax
pytestmark = pytest.mark.ci


def optional(name):
    with catch_warnings():
        simplefilter("ignore")
        try:
            return import_module(name)
        except ImportError:
            return None


nn, nnx, eqx, hk = map(optional, ("flax.linen", "flax.nnx", "equinox", "haiku"))
keras = optional("keras") if os.environ.get("KERAS_BACKEND") == "jax" else None
optax, diffrax, ode = map(optional, ("optax", "diffrax", "jax.experimental.ode"))


if keras is not None:
    keras.config.set_floatx("float64")


class Program(NamedTuple):
    """A program of JAX.

    make    () -> (fn, args): arrays among args are placeholders, those inside of pytrees variables
    needs   the package that it is written in
    second  whether it has a second derivative in JAX, and the same
    plain   whether its derivative without its rules is the same
    close   to which precision
    """

    make: Any
    needs: Any = jax
    second: bool = True
    plain: bool = True
    close: float = 1e-10


PROGRAMS: dict[str, Program] = {}


def program(needs=jax, **said):
    def decorate(make):
        PROGRAMS[make.__name__] = Program(make, needs, **said)
        return make

    return decorate


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def wide(tree):
    """Its floating arrays in float64."""

    def widened(x):
        floating = hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.floating)
        return jnp.asarray(x, "float64") if floating else x

    return jax.tree.map(widened, tree)


def of_module(module, *inputs, **keys):
    """A module of flax with parameters of its own."""
    parameters = module.init(jax.random.key(0), *inputs, **keys)
    return module.apply, (wide(parameters), *inputs)


def by_compact(call):
    """A module of flax that calls a function."""

    class Module(nn.Module):
        @nn.compact
        def __call__(self, *args):
            return call(*args)

    return Module()


def of_haiku(fn, *inputs):
    transformed = hk.without_apply_rng(hk.transform(fn))
    return transformed.apply, (wide(transformed.init(jax.random.key(0), *inputs)), *inputs)


# --- flax ---------------------------------------------------------------------------------------


@program(nn)
def flax_mlp():
    def call(x):
        x = nn.LayerNorm()(nn.relu(nn.Dense(8)(x)))
        return nn.Dense(3)(nn.gelu(x))

    return of_module(by_compact(call), numbers(2, 5))


@program(nn)
def flax_cnn():
    def call(x):
        x = nn.max_pool(nn.relu(nn.Conv(4, (3, 3))(x)), (2, 2), (2, 2))
        x = nn.BatchNorm(use_running_average=True)(nn.avg_pool(x, (2, 2), (1, 1)))
        return nn.Dense(3)(x.reshape(x.shape[0], -1))

    return of_module(by_compact(call), numbers(2, 8, 8, 3))


@program(nn)
def flax_batch_norm_in_training():
    module = by_compact(lambda x: nn.BatchNorm(use_running_average=False)(nn.Dense(4)(x)))
    x = numbers(6, 3)
    parameters = wide(module.init(jax.random.key(0), x))
    return lambda p, x: module.apply(p, x, mutable=["batch_stats"]), (parameters, x)


@program(nn)
def flax_residual_block():
    def call(x):
        y = nn.GroupNorm(2)(nn.Conv(4, (3, 3), feature_group_count=2)(x))
        y = nn.ConvTranspose(4, (3, 3), strides=(2, 2))(nn.silu(y))
        return nn.avg_pool(y, (2, 2), (2, 2)) + x

    return of_module(by_compact(call), numbers(2, 4, 4, 4))


@program(nn)
def flax_lstm():
    return of_module(
        by_compact(lambda x: nn.RNN(nn.LSTMCell(6, param_dtype=float))(x)), numbers(2, 7, 5)
    )


@program(nn)
def flax_two_ways():
    def call(x):
        return nn.Bidirectional(*[nn.RNN(nn.GRUCell(3, param_dtype=float)) for _ in range(2)])(x)

    return of_module(by_compact(call), numbers(2, 5, 4))


@program(nn)
def flax_causal_attention():
    def call(x):
        mask = nn.make_causal_mask(jnp.ones(x.shape[:2]))
        return nn.MultiHeadDotProductAttention(2)(x, x, mask=mask)

    return of_module(by_compact(call), numbers(2, 5, 8))


@program(nn)
def flax_embedding():
    module = by_compact(lambda i: nn.Dense(2)(nn.Embed(10, 4)(i)))
    indices = np.array([[1, 2], [3, 9]])
    return of_module(module, indices)


@program(nn)
def flax_dropout():
    module = by_compact(lambda x: nn.Dropout(0.5, deterministic=False)(nn.Dense(6)(x)))
    keys = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
    x = numbers(2, 5)
    parameters = wide(module.init(keys, x))
    return lambda p, x: module.apply(p, x, rngs={"dropout": jax.random.key(5)}), (parameters, x)


@program(nn)
def flax_layers_by_scan():
    class Layer(nn.Module):
        @nn.compact
        def __call__(self, x, _):
            return x + nn.tanh(nn.Dense(4)(x)), None

    def call(x):
        layers = nn.scan(
            nn.remat(Layer), variable_axes={"params": 0}, split_rngs={"params": True}, length=3
        )
        return layers()(x, None)[0]

    return of_module(by_compact(call), numbers(2, 4))


@program(nn)
def flax_transformer():
    def call(x):
        y = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(2)(y, y)
        return x + nn.Dense(8)(nn.gelu(nn.Dense(16)(nn.LayerNorm()(x))))

    return of_module(by_compact(call), numbers(2, 4, 8))


@program(nnx)
def nnx_module():
    def rngs(seed):
        return nnx.Rngs(seed)

    first, second = nnx.Linear(5, 8, rngs=rngs(0)), nnx.Linear(8, 3, rngs=rngs(1))
    module = nnx.Sequential(first, nnx.relu, nnx.LayerNorm(8, rngs=rngs(2)), second)
    structure, state = nnx.split(module)
    return lambda state, x: nnx.merge(structure, state)(x), (wide(state), numbers(2, 5))


# --- equinox ------------------------------------------------------------------------------------


@program(eqx)
def equinox_mlp():
    module = eqx.nn.MLP(5, 3, 8, 2, activation=jax.nn.silu, key=jax.random.key(0))
    return wide(module), (numbers(5),)


@program(eqx)
def equinox_gru():
    cell = wide(eqx.nn.GRUCell(5, 6, key=jax.random.key(0)))

    def run(cells, xs):
        return lax.scan(lambda c, x: (cells[0](x, c), c), jnp.zeros(6), xs)[0]

    return run, ([cell], numbers(7, 5))


@program(eqx)
def equinox_cnn():
    layers = [
        eqx.nn.Conv2d(3, 4, 3, key=jax.random.key(0)),
        eqx.nn.Lambda(jax.nn.relu),
        eqx.nn.MaxPool2d(2, 2),
        eqx.nn.GroupNorm(2, 4),
    ]
    return wide(eqx.nn.Sequential(layers)), (numbers(3, 8, 8),)


@program(eqx)
def equinox_attention():
    module = wide(eqx.nn.MultiheadAttention(2, 8, key=jax.random.key(0)))
    return jax.vmap(module), tuple(numbers(2, 5, 8, seed=i) for i in range(3))


# --- keras --------------------------------------------------------------------------------------


def of_keras(shape, *layers):
    """A model of keras as it is on JAX: of its variables and an array."""
    model = keras.Sequential([keras.Input(shape), *layers])
    parameters = [v.value for v in model.trainable_variables]
    others = [v.value for v in model.non_trainable_variables]
    return lambda p, x: model.stateless_call(p, others, x)[0], (parameters, numbers(2, *shape))


@program(keras)
def keras_cnn():
    layers = keras.layers
    return of_keras(
        (8, 8, 3),
        layers.Conv2D(4, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(3, activation="gelu"),
    )


@program(keras, close=1e-6)  # keras computes a part in float32
def keras_lstm():
    return of_keras((7, 5), keras.layers.LSTM(6))


# --- haiku --------------------------------------------------------------------------------------


@program(hk)
def haiku_cnn():
    def network(x):
        return hk.Linear(2)(jax.nn.relu(hk.Conv2D(3, 3)(x)).mean((1, 2)))

    return of_haiku(network, numbers(2, 6, 6, 3))


@program(hk)
def haiku_lstm():
    def network(x):
        core = hk.LSTM(6)
        return hk.dynamic_unroll(core, x, core.initial_state(2))[0]

    return of_haiku(network, numbers(7, 2, 5))


# --- losses and optimisers of optax -------------------------------------------------------------


@program(optax)
def optax_classes():
    labels = np.array([0, 3, 1, 4])
    return lambda x: optax.softmax_cross_entropy_with_integer_labels(x, labels), (numbers(4, 5),)


@program(optax)
def optax_losses():
    def losses(a, b):
        entropy = optax.sigmoid_binary_cross_entropy(a, jax.nn.sigmoid(b))
        return optax.huber_loss(a, b).sum() + optax.cosine_distance(a, b).sum() + entropy.sum()

    return losses, (numbers(4, 5), numbers(4, 5, seed=1))


@program(optax)
def optax_alignment():
    labels = jnp.array([[1, 2]])

    def loss(x):
        return optax.ctc_loss(x[None], jnp.zeros((1, 4)), labels, jnp.zeros((1, 2)))

    return loss, (numbers(4, 5),)


@program(optax)
def optax_two_steps_of_adam():
    optimiser = optax.adamw(1e-2)

    def trained(w, x):
        state = optimiser.init(w)
        for _ in range(2):
            slope = jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w) ** 2))(w)
            updates, state = optimiser.update(slope, state, w)
            w = optax.apply_updates(w, updates)
        return w

    return trained, (numbers(3, 2), numbers(4, 3))


# --- programs with rules of their own -----------------------------------------------------------


@program(plain=False)
def straight_through():
    @jax.custom_vjp
    def rounded(x):
        return jnp.round(x)

    rounded.defvjp(lambda x: (rounded(x), None), lambda _, g: (g,))
    return lambda w, x: jnp.tanh(x @ rounded(3 * w)), (numbers(3, 2), numbers(4, 3))


@program(plain=False)
def spiking_network():
    @jax.custom_jvp
    def spike(v):
        return (v > 0).astype(v.dtype)

    spike.defjvps(lambda dv, y, v: dv / (1 + 10 * jnp.abs(v)) ** 2)

    def network(w, x):
        def step(v, row):
            v = 0.9 * v + row @ w
            fired = spike(v - 1)
            return v * (1 - lax.stop_gradient(fired)), fired

        return lax.scan(step, jnp.zeros(w.shape[1]), x)[1].sum(0)

    return network, (numbers(3, 4), numbers(6, 3)), False


@program()
def deep_equilibrium():
    def step(w, x, z):
        return jnp.tanh(w @ z + x)

    @jax.custom_vjp
    def fixed(w, x):
        return lax.fori_loop(0, 50, lambda _, z: step(w, x, z), jnp.zeros_like(x))

    def backward(kept, g):
        w, x, z = kept
        pull = jax.vjp(lambda z: step(w, x, z), z)[1]
        u = lax.fori_loop(0, 50, lambda _, u: g + pull(u)[0], g)
        return jax.vjp(lambda w, x: step(w, x, z), w, x)[1](u)

    fixed.defvjp(lambda w, x: ((z := fixed(w, x)), (w, x, z)), backward)
    return fixed, (0.2 * numbers(4, 4), numbers(4))


@program(plain=False)
def implicit_root():
    def root(a):
        def newton(f, x):
            return lax.fori_loop(0, 30, lambda _, x: x - f(x) / (3 * x**2), x)

        return lax.custom_root(
            lambda x: x**3 - a, jnp.ones_like(a), newton, lambda g, y: y / g(jnp.ones_like(y))
        )

    return root, (np.array([2.0, 3.0]),)


@program(plain=False)
def conjugate_gradients():
    def solved(a, b):
        return jax.scipy.sparse.linalg.cg(lambda v: a @ v + 3 * v, b)[0]

    return solved, (np.eye(4) + 0.1, numbers(4))


@program(ode, plain=False, close=1e-7)  # its solvers stop at 1e-8
def adjoint_ode():
    def solved(y, rate):
        times = jnp.linspace(0.0, 1.0, 4)
        return ode.odeint(lambda y, t, r: -r * y * jnp.cos(t), y, times, rate)

    return solved, (np.array([1.0, 2.0]), np.array(0.7))


# --- science ------------------------------------------------------------------------------------


@program()
def ode_by_scan():
    def field(y):
        return jnp.stack([y[1], -jnp.sin(y[0])])

    def step(y, _):
        k1 = field(y)
        k2 = field(y + 0.05 * k1)
        k3 = field(y + 0.05 * k2)
        k4 = field(y + 0.1 * k3)
        return y + 0.1 * (k1 + 2 * k2 + 2 * k3 + k4) / 6, y

    return lambda y: lax.scan(step, y, None, length=20), (np.array([1.0, 0.0]),)


@program()
def ode_until_an_event():
    def fall(y):
        def step(carry):
            t, y = carry
            return t + 1, y + 0.1 * jnp.stack([y[1], -9.81 * jnp.ones(())])

        return lax.while_loop(lambda c: (c[1][0] > 0) & (c[0] < 50), step, (0, y))[1]

    return jax.jit(fall), (np.array([2.0, 1.0]),), None


def lennard_jones_energy(r):
    d = r[:, None] - r[None]
    inverse = 1 / ((d**2).sum(-1) + jnp.eye(len(r))) ** 3
    return (4 * (inverse**2 - inverse) * (1 - jnp.eye(len(r)))).sum() / 2


@program()
def lennard_jones():
    return lennard_jones_energy, (2 * numbers(5, 3),)


@program()
def forces_of_lennard_jones():
    return jax.grad(lennard_jones_energy), (2 * numbers(5, 3),)


@program(plain=False)
def double_pendulum():
    def lagrangian(q, v):
        kinetic = v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * jnp.cos(q[0] - q[1])
        return kinetic + 9.8 * (2 * jnp.cos(q[0]) + jnp.cos(q[1]))

    def acceleration(q, v):
        force = jax.grad(lagrangian, 0)(q, v) - jax.jacfwd(jax.grad(lagrangian, 1), 0)(q, v) @ v
        return jnp.linalg.solve(jax.hessian(lagrangian, 1)(q, v), force)

    return acceleration, (numbers(2), numbers(2, seed=1))


@program()
def hidden_markov_model():
    def forward(a, rows):
        def step(alpha, row):
            return jax.scipy.special.logsumexp(alpha[:, None] + a, 0) + row, None

        return lax.scan(step, jnp.zeros(3), rows)[0]

    return forward, (numbers(3, 3), numbers(6, 3))


@program(plain=False)
def kalman_filter():
    def run(a, rows):
        def step(carry, y):
            m, p = carry
            m, p = a @ m, a @ p @ a.T + 0.1 * jnp.eye(2)
            gain = jnp.linalg.solve(p + 0.2 * jnp.eye(2), p).T
            return (m + gain @ (y - m), p - gain @ p), m

        return lax.scan(step, (jnp.zeros(2), jnp.eye(2)), rows)

    return run, (0.5 * numbers(2, 2), numbers(5, 2))


@program()
def gaussian_process():
    def likelihood(scale, x, y):
        k = jnp.exp(-((x[:, None] - x[None]) ** 2) / scale**2) + 0.1 * jnp.eye(len(x))
        chol = jnp.linalg.cholesky(k)
        alpha = jax.scipy.linalg.cho_solve((chol, True), y)
        return -0.5 * y @ alpha - jnp.log(jnp.diag(chol)).sum()

    return likelihood, (np.array(0.8), numbers(6), numbers(6, seed=1))


@program(plain=False)
def matrix_functions():
    def functions(a):
        s = a @ a.T + jnp.eye(4)
        values, vectors = jnp.linalg.eigh(s)
        root = (vectors * jnp.sqrt(values)) @ vectors.T
        return root + jnp.linalg.pinv(a) + jnp.linalg.inv(s) * jnp.linalg.slogdet(s)[1]

    return functions, (numbers(4, 4),)


@program()
def spectrum():
    def filtered(x, h):
        y = jnp.fft.irfft(jnp.fft.rfft(x) * jnp.fft.rfft(h, len(x)), len(x))
        return jnp.abs(jnp.fft.fft2(y.reshape(2, 4))) ** 2

    return filtered, (numbers(8), numbers(3))


@program()
def order_statistics():
    def statistics(x):
        top, where = lax.top_k(x, 2)
        return jnp.median(x, 1) + jnp.sort(x, 1)[:, 1] * top[:, 1] + x[where[0, 0]].sum()

    return statistics, (numbers(5, 6),)


@program()
def graph_network():
    senders, receivers = np.array([0, 1, 2, 2, 3]), np.array([1, 2, 0, 3, 0])

    def network(p, x):
        for w, u in zip(p["w"], p["u"], strict=True):
            messages = jax.nn.relu(x[senders] @ w)
            total = jax.ops.segment_sum(messages, receivers, 4)
            peak = jax.ops.segment_max(messages, receivers, 4)
            x = jnp.tanh(x @ u + total + jnp.where(jnp.isfinite(peak), peak, 0.0))
        return x

    weights = {name: [numbers(3, 3, seed=i) for i in range(2)] for name in "wu"}
    return network, (weights, numbers(4, 3))


@program()
def masked_attention():
    def attention(q, k, v):
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(3.0)
        masked = jnp.where(jnp.tril(jnp.ones((5, 5), bool)), scores, -jnp.inf)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(masked), v)

    return attention, tuple(numbers(2, 5, 2, 3, seed=i) for i in range(3))


@program()
def optimal_transport():
    def distance(cost):
        def step(_, potentials):
            f, g = potentials
            f = -jax.nn.logsumexp(g[None] - cost, axis=1)
            return f, -jax.nn.logsumexp(f[:, None] - cost, axis=0)

        f, g = lax.fori_loop(0, 10, step, (jnp.zeros(4), jnp.zeros(4)))
        return jnp.sum(jnp.exp(f[:, None] + g[None] - cost) * cost)

    return distance, (np.abs(numbers(4, 4)),)


@program()
def variational_autoencoder():
    def bound(p, key, x):
        mean, log_scale = jnp.split(x @ p["encoder"], 2, -1)
        z = mean + jnp.exp(log_scale) * jax.random.normal(key, mean.shape, mean.dtype)
        logits = z @ p["decoder"]
        fit = jnp.sum(x * logits - jax.nn.softplus(logits))
        return fit - 0.5 * jnp.sum(jnp.exp(2 * log_scale) + mean**2 - 1 - 2 * log_scale)

    weights = {"encoder": 0.3 * numbers(5, 4), "decoder": 0.3 * numbers(2, 5)}
    return bound, (weights, jax.random.key(7), numbers(3, 5))


# --- the comparison -----------------------------------------------------------------------------


def is_floating(x):
    return hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.floating)


def loss_of(ys):
    return sum(jnp.sum(jnp.sin(y)) for y in jax.tree.leaves(ys) if is_floating(y))


def theirs(fn, args, second):
    """Values, and gradients of both orders with respect to every floating array."""
    leaves, structure = jax.tree.flatten((fn, args))
    places = [i for i, x in enumerate(leaves) if is_floating(x)]

    def loss(moving):
        given = list(leaves)
        for i, x in zip(places, moving, strict=True):
            given[i] = x
        called, arguments = jax.tree.unflatten(structure, given)
        return loss_of(called(*arguments))

    moving = [jnp.asarray(leaves[i]) for i in places]
    found = [jax.tree.leaves(fn(*args))]
    if second is not None:
        grad = jax.jit(jax.grad(loss))
        found.append(grad(moving))
    if second:
        squares = jax.jit(jax.grad(lambda xs: sum(jnp.sum(dx**2) for dx in grad(xs))))
        found.append(squares(moving))
    return found


def ours(fn, args, second, **options):
    """The same, of the function opened."""
    with gg.Graph() as graph:
        given = list(args)
        for i, a in enumerate(args):
            if isinstance(a, np.ndarray):
                given[i] = gg.placeholder(a.shape, a.dtype)
        ys = jax.tree.leaves(gg.interop.open_jax(fn, *given))
        inputs = [x for x in given if isinstance(x, gg.Tensor)]
        moving = in_order(fn, given, graph)
        found: list[Any] = [ys]
        if second is not None:
            loss = sum(gg.sum(gg.sin(y)) for y in ys if y.dtype.kind == "f")
            found.append(gg.gradients(loss, moving, unconnected="zero", **options))
        if second:
            squares = sum(gg.sum(dx * dx) for dx in found[1])
            found.append(gg.gradients(squares, moving, unconnected="zero", **options))
        f = gg.compile(inputs, found, backend="numpy")
    return f(*[a for a in args if isinstance(a, np.ndarray)])


def in_order(fn, given, graph):
    """The tensors that stand for floating arrays, in the order of the pytree."""
    variables = iter(graph.variables)
    leaves = jax.tree.leaves((fn, tuple(given)))
    return [
        x if isinstance(x, gg.Tensor) else next(variables) for x in leaves if is_floating_or_ours(x)
    ]


def is_floating_or_ours(x):
    return x.dtype.kind == "f" if isinstance(x, gg.Tensor) else is_floating(x)


def compared(found, wanted, close):
    for a, b in zip(found, wanted, strict=True):
        for got, want in zip(a, b, strict=True):
            if not jax.dtypes.issubdtype(want.dtype, jax.dtypes.prng_key):
                scale = max(1.0, float(np.abs(want).max(initial=0)))
                np.testing.assert_allclose(got, want, close, close * scale)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients_are_those_of_jax(name):
    asked = PROGRAMS[name]
    if asked.needs is None:
        pytest.skip("the package is not installed")
    with jax.enable_x64(True), catch_warnings(), np.errstate(all="ignore"):
        simplefilter("ignore")  # of packages and their versions
        fn, args, *orders = asked.make()
        second = orders[0] if orders else asked.second
        wanted = theirs(fn, args, second)
        compared(ours(fn, args, second), wanted, asked.close)
        if asked.plain and second is not None:
            compared(ours(fn, args, False, overrides="none"), wanted[:2], asked.close)


@pytest.mark.skipif(diffrax is None, reason="the package is not installed")
def test_solvers_with_callbacks_of_their_own_are_refused_by_what_they_call():
    def solved(y):
        found = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, _: -y), diffrax.Tsit5(), t0=0.0, t1=1.0, dt0=0.25, y0=y
        )
        return found.ys

    with gg.Graph() as graph, catch_warnings():
        simplefilter("ignore")
        with pytest.raises(gg.GraphError, match=r"pure_callback: \d times"):
            gg.interop.open_jax(solved, gg.placeholder((3,), "float32"))
    assert len(graph) == 1


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("name", ["flax_cnn", "straight_through", "variational_autoencoder"])
def test_what_comes_back_as_a_function_of_jax_is_the_program(name, single):
    asked = PROGRAMS[name]
    if asked.needs is None:
        pytest.skip("the package is not installed")
    with jax.enable_x64(not single), catch_warnings():
        simplefilter("ignore")
        fn, args = asked.make()
        args = jax.tree.map(lambda x: jnp.asarray(x) if isinstance(x, np.ndarray) else x, args)
        back = gg.interop.retrofit(fn, lambda graph: None)
        close = 1e-4 if single else 1e-10
        compared(theirs(back, args, asked.second), theirs(fn, args, asked.second), close)
