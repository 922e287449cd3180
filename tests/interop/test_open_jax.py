"""Functions of JAX, opened: values, gradients and second gradients are those of JAX."""

import numpy as np
import pytest

import graphgrad as gg

from ..each import every

jax = pytest.importorskip("jax")
jnp, lax, primitives = jax.numpy, jax.lax, pytest.importorskip("jax.extend.core").primitives
tracing = pytest.importorskip("graphgrad.interop.jax_primitives.tracing")
is_known, LEFT_OUT = tracing.is_known, tracing.LEFT_OUT


@pytest.fixture(scope="module", autouse=True)
def _sixty_four_bits():
    with jax.enable_x64(True):
        yield


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


A, B, V, M = numbers(3, 4), numbers(4, 3, seed=1), numbers(5), numbers(4, 4)
IMAGE, FILTERS = numbers(2, 6, 5, 3), numbers(3, 2, 3, 4)
SPD = M @ M.T + 4 * np.eye(4)


def at_scale(fn):
    return lambda x: fn(0.3 * x)


def scanned(x):
    def step(carry, row):
        carry = jnp.tanh(carry + row)
        return carry, carry * row

    last, rows = lax.scan(step, jnp.zeros(x.shape[1]), x)
    return last + rows.sum(0)


def backwards(x):
    return lax.scan(lambda c, r: (c * 0.5 + r, c), x[0], x, reverse=True)


def repeated(x):
    return lax.fori_loop(0, 4, lambda i, y: jnp.sin(y) + x * i, x)


def until(x):
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.sin(c[1])), (0, x))[1]


def chosen(x):
    return lax.cond(x.sum() > 0, jnp.sin, lambda y: y * x, x)


def switched(x):
    return lax.switch(2, [jnp.sin, jnp.cos, lambda y: y**3], x)


def picked_by_values(x):
    index = (jnp.abs(x) * 10).astype(int) % 3
    return lax.switch(index[0, 0], [jnp.sin, jnp.cos, lambda y: y**3], x)


def attention(q, k):
    scores = jnp.einsum("qd,dk->qk", q, k) / 2.0
    mask = jnp.tril(jnp.ones(scores.shape, bool))
    return jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1) @ k.T


def segments(x):
    return jax.ops.segment_sum(x, jnp.array([0, 2, 0]), num_segments=3)


def convolved(x, w, **kwargs):
    numbers = lax.conv_dimension_numbers(x.shape, w.shape, ("NHWC", "HWIO", "NHWC"))
    options = {"window_strides": (1, 1), "padding": "SAME", **kwargs}
    return lax.conv_general_dilated(x, w, dimension_numbers=numbers, **options)


def grouped(x, w):
    return lax.conv_general_dilated(
        x[:, :, :4].transpose(0, 2, 1, 3), w, (2, 1), "SAME", feature_group_count=2
    )


def keyed(x):
    keys = jnp.stack([*jax.random.split(jax.random.key(2), 3)])
    more = jax.vmap(lambda i: jax.random.fold_in(keys[0], i))(jnp.arange(3))
    rows = [keys.reshape(3, 1)[::-1].T[0][x.argmax() % 3], keys[1], more[2]]
    return x * sum(jax.random.normal(key, x.shape, x.dtype) for key in rows)


def normalised(x):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5)


FUNCTIONS = {
    "elements": (lambda x: jnp.exp(-(x**2)) + jnp.tanh(x) * jnp.log1p(x**2) - jnp.arctan(x), A),
    "powers": (lambda x: x**3 + jnp.abs(x) ** 1.5 + 1 / (x + 4) + jnp.cbrt(x) ** -2, A),
    "circles": (lambda x: jnp.sin(x) + jnp.cos(x) * jnp.tan(0.3 * x) + jnp.arctan2(x, 2.0), A),
    "arcs": (at_scale(lambda x: jnp.arcsin(x) + jnp.arccos(x) + jnp.arctanh(x) + jnp.sinh(x)), A),
    "special": (
        lambda x: lax.erf(x) + lax.erfc(x) + lax.lgamma(x**2 + 1) + lax.digamma(x**2 + 1),
        A,
    ),
    "inverse erf": (lambda x: lax.erf_inv(jnp.tanh(x)), A),
    "bessel": (lambda x: lax.bessel_i0e(x) + lax.bessel_i1e(x), A),
    "gamma": (lambda x: lax.igamma(2.5, x**2 + 0.5) + lax.igammac(1.5, x**2 + 0.5), A),
    "rounded": (lambda x: jnp.floor(x) + jnp.ceil(x) * x + jnp.round(x) + jnp.sign(x) * x, A),
    "clipped": (
        lambda x: jnp.clip(x, -0.5, 0.5) * x + jnp.maximum(x, 0.1) - jnp.minimum(x, x.T.mean()),
        A,
    ),
    "clamped": (lambda x: lax.clamp(-0.5, x, 0.5) * x, A),
    "clamped by others": (
        lambda x, y: lax.clamp(x, y.T, x + 1) * lax.clamp(x * 0.5, x, x * 2),
        A,
        B,
    ),
    "chosen": (lambda x: jnp.where(x > 0, x**2, jnp.sin(x)), A),
    "sums": (lambda x: x.sum(0) + x.mean() + x.max(0) * x.min(0) + jnp.prod(x, 0), A),
    "spread": (lambda x: x.std(0) + jnp.var(x) + jax.nn.logsumexp(x, 0), A),
    "running": (lambda x: jnp.cumsum(x, 0) + jnp.cumprod(x, 1) + lax.cumlogsumexp(x, axis=1), A),
    "running back": (
        lambda x: lax.cumsum(x, 1, reverse=True) + lax.cummax(x, 0) + lax.cummin(x, 1),
        A,
    ),
    "sorted": (lambda x: jnp.sort(x, 1) * jnp.arange(4) + jnp.sort(x, 0)[::-1], A),
    "ranked": (lambda x: x[jnp.argsort(x[:, 0])] * jnp.argmax(x), A),
    "top": (lambda x: lax.top_k(x, 2)[0] * jnp.arange(1, 3), A),
    "median": (lambda x: jnp.median(x, 1) + jnp.quantile(x, 0.3, axis=1), A),
    "shapes": (lambda x: jnp.concatenate([x.T.reshape(3, 4), x[::-1], jnp.pad(x, 1)[:, 1:-1]]), A),
    "expanded": (lambda x: x[None, :, None] * jnp.ones((2, 1, 3, 1)) + jnp.tile(x, (2, 1))[3:], A),
    "rolled": (lambda x: jnp.roll(x, 1, 0) * jnp.flip(x, 1) + jnp.repeat(x, 2, 1)[:, ::2], A),
    "stacked": (lambda x: jnp.stack([x, x**2], 1).swapaxes(0, 2), A),
    "split": (lambda x: jnp.split(x, 2, 1)[1] + jnp.split(x, [1, 3], 1)[1], A),
    "triangles": (lambda x: jnp.tril(x @ x.T) + jnp.triu(x @ x.T, 1) * jnp.eye(3), A),
    "interior padding": (lambda x: lax.pad(x, 0.5, ((1, -1, 1), (-1, 2, 0))), A),
    "slices": (lambda x: x[1:, ::2] * x[:2, 1:3] + x[-1, 0], A),
    "dynamic slices": (
        lambda x: lax.dynamic_slice(x, (1, 2), (2, 2)) + lax.dynamic_slice(x, (9, -3), (2, 2)),
        A,
    ),
    "dynamic updates": (lambda x: lax.dynamic_update_slice(x, x[:2, :2] * 3, (1, 1)) * x, A),
    "taken": (lambda x: x[jnp.array([0, 2, 0])] * x[1] + jnp.take(x, 1, 1)[:, None], A),
    "taken outside": (
        lambda x: jnp.take(x, jnp.array([0, 5, -1]), 0, mode="fill", fill_value=2.0),
        A,
    ),
    "taken within": (lambda x: jnp.take(x, jnp.array([0, 5, -9]), 0, mode="clip"), A),
    "places": (lambda x: x[jnp.array([0, 2]), jnp.array([1, 3])] ** 2, A),
    "places and rows": (lambda x: x[:, jnp.array([[0, 1], [3, 3]])] * 2, A),
    "along": (lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1)[:, :2], 1) ** 2, A),
    "batched gather": (lambda x: jax.vmap(lambda row, i: row[i])(x, jnp.array([0, 3, 1])), A),
    "diagonal": (lambda x: jnp.diagonal(x @ x.T) + jnp.trace(x @ x.T), A),
    "added at": (lambda x: x.at[jnp.array([0, 0, 2])].add(x[:3] * 2), A),
    "set at": (lambda x: x.at[1, jnp.array([0, 2])].set(x[0, :2] ** 2), A),
    "multiplied at": (lambda x: x.at[jnp.array([0, 2])].multiply(x[1], unique_indices=True), A),
    "extremes at": (lambda x: x.at[0].max(x[1]).at[2].min(x[1] - 1), A),
    "subtracted at": (lambda x: x.at[jnp.array([0, 0, 2])].subtract(x[:3] * 2), A),
    "dropped": (lambda x: x.at[jnp.array([1, 7])].add(x[:2], mode="drop"), A),
    "segments": (segments, A),
    "products": (
        lambda x, y: x @ y + jnp.einsum("ij,jk->ki", x, y) + jnp.dot(x, y[:, 0])[:, None],
        A,
        B,
    ),
    "batched products": (lambda x: jnp.einsum("bhwc,bxyc->bhx", x, x), IMAGE[:, :2, :2]),
    "outer": (lambda x: jnp.outer(x, x) + jnp.tensordot(x, x, 0), V),
    "attention": (attention, A, B),
    "convolution": (convolved, IMAGE, FILTERS),
    "strided convolution": (
        lambda x, w: convolved(x, w, window_strides=(2, 1), padding="VALID"),
        IMAGE,
        FILTERS,
    ),
    "dilated convolution": (
        lambda x, w: convolved(x, w, rhs_dilation=(2, 2), padding=((1, 2), (0, 3))),
        IMAGE,
        FILTERS,
    ),
    "transposed convolution": (
        lambda x, w: convolved(x, w, lhs_dilation=(2, 2), padding=((2, 1), (1, 1))),
        IMAGE,
        FILTERS,
    ),
    "channels first": (
        lambda x, w: lax.conv(x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), (1, 1), "SAME"),
        IMAGE,
        FILTERS,
    ),
    "parts of a batch": (
        lambda x, w: lax.conv_general_dilated(
            x.transpose(0, 3, 1, 2), w, (1, 1), "SAME", batch_group_count=2
        ),
        IMAGE,
        numbers(4, 3, 3, 2),
    ),
    "gradients of groups": (
        lambda x, w: jax.grad(lambda *a: jnp.sum(jnp.sin(grouped(*a))), (0, 1))(x, w),
        IMAGE,
        numbers(4, 2, 3, 2),
    ),
    "one axis": (lambda x: jnp.convolve(x, jnp.array([1.0, -2.0, 0.5])), V),
    "max pool": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        IMAGE,
    ),
    "sum pool": (
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 2, 1), "SAME"),
        IMAGE,
    ),
    "pools with ties": (
        lambda x: (
            lax.reduce_window(x, jnp.inf, lax.min, (3,), (1,), ((1, 1),))
            + lax.reduce_window(x, -jnp.inf, lax.max, (3,), (1,), ((1, 1),))
        ),
        np.array([1.0, 1.0, 2.0, 2.0, 2.0, 0.0]),
    ),
    "column order": (lambda x: lax.reshape(x, (2, 6), (1, 0)) * x.reshape(2, 6, order="F"), A),
    "between": (lambda x: jnp.interp(x, jnp.array([-1.0, 0.0, 1.0]), x[:3]), V),
    "places of keys": (keyed, A),
    "normalised": (normalised, A),
    "cholesky": (lambda x: jnp.linalg.cholesky(x @ x.T + 4 * jnp.eye(4)), M),
    "solve": (lambda x: jnp.linalg.solve(x @ x.T + jnp.eye(4), x), M),
    "inverse": (lambda x: jnp.linalg.inv(x + 4 * jnp.eye(4)), M),
    "det": (lambda x: jnp.linalg.det(x) + jnp.linalg.slogdet(x)[1], M),
    "eigh": (lambda x: jnp.linalg.eigh(x + x.T)[0], M),
    "svd": (lambda x: jnp.linalg.svd(x, compute_uv=False) + jnp.linalg.norm(x, 2), A),
    "qr": (lambda x: jnp.linalg.qr(x)[1] ** 2, M),
    "triangular": (
        lambda x: jax.scipy.linalg.solve_triangular(jnp.tril(x) + 3 * jnp.eye(4), x, lower=True),
        M,
    ),
    "pinv": (jnp.linalg.pinv, A),
    "fourier": (
        lambda x: jnp.abs(jnp.fft.fft(x)) ** 2 + jnp.fft.irfft(jnp.fft.rfft(x, axis=1), 4, axis=1),
        A,
    ),
    "complex": (lambda x: jnp.real(jnp.exp(1j * x) * (x + 2j)) + jnp.angle(x + 3j), A),
    "scan": (scanned, A),
    "scan back": (backwards, A),
    "fori": (repeated, A),
    "while": (until, A),
    "cond": (chosen, A),
    "switch": (switched, A),
    "switch of values": (picked_by_values, A),
    "vmap": (jax.vmap(lambda row: jnp.sin(row).sum() * row), A),
    "remat": (jax.checkpoint(lambda x: jnp.sin(jnp.cos(x))), A),
    "grad inside": (lambda x: jax.grad(lambda y: jnp.sum(jnp.sin(y) * y))(x), A),
    "hessian inside": (lambda x: jax.hessian(lambda y: jnp.sum(y**4))(x), V),
    "named": (
        lambda x: (
            jax.nn.gelu(x) + jax.nn.silu(x) + jax.nn.softplus(x) + jax.nn.elu(x) + jax.nn.selu(x)
        ),
        A,
    ),
    "activations": (
        lambda x: (
            jax.nn.relu6(x)
            + jax.nn.hard_swish(x)
            + jax.nn.log_softmax(x)
            + jax.nn.sigmoid(x)
            + jax.nn.one_hot(jnp.array([0, 1, 2]), 4)
        ),
        A,
    ),
}
ONE_GRADIENT = ("while",)


def jax_forms(fn, arrays, second):
    """Values, and weighted gradients of the first two orders, by JAX."""

    def loss(*xs):
        return sum(jnp.sum(jnp.sin(y)) for y in jax.tree.leaves(fn(*xs)))

    found = [jax.tree.leaves(fn(*arrays))]
    every = tuple(range(len(arrays)))
    if second is None:
        return found
    grad = jax.grad(loss, every)
    found.append(grad(*arrays))
    if second:
        found.append(jax.grad(lambda *xs: sum(jnp.sum(g**2) for g in grad(*xs)), every)(*arrays))
    return found


def our_forms(fn, arrays, second, backend="numpy"):
    """The same, of the function opened."""
    with gg.Graph():
        xs = [gg.placeholder(a.shape, a.dtype) for a in arrays]
        ys = jax.tree.leaves(gg.interop.open_jax(fn, *xs))
        found = [ys]
        if second is not None:
            dxs = gg.gradients(sum(gg.sum(gg.sin(y)) for y in ys), xs, unconnected="zero")
            found.append(dxs)
        if second:
            squares = sum(gg.sum(dx * dx) for dx in dxs)
            found.append(gg.gradients(squares, xs, unconnected="zero"))
        return gg.compile(xs, found, backend=backend)(*arrays)


@pytest.mark.parametrize("name", every(1, FUNCTIONS))
def test_values_and_gradients_are_those_of_jax(name):
    """The second order of every third function."""
    compare(name, second=list(FUNCTIONS).index(name) % 3 == 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_gradients_are_those_of_jax(name):
    compare(name, second=True)


def compare(name, second):
    fn, *arrays = FUNCTIONS[name]
    second = None if name in ONE_GRADIENT else second
    with np.errstate(all="ignore"):
        ours = our_forms(fn, arrays, second)
    theirs = jax.jit(lambda *xs: jax_forms(fn, xs, second))(*map(jnp.asarray, arrays))
    for got, want in zip(ours, theirs, strict=True):
        for a, b in zip(got, want, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, 1e-9, 1e-9 * max(1.0, float(np.abs(b).max(initial=0))))


WITHOUT_GRADIENTS = {
    "a loop of each": (
        jax.vmap(
            lambda x: lax.while_loop(lambda c: c[1] < 9, lambda c: (c[0] + 1, c[1] * 2 + 1), (0, x))
        ),
        np.array([0.5, 3.0, 20.0]),
    ),
    "unique": (
        lambda x: jnp.unique(jnp.round(x), size=4, return_inverse=True, return_counts=True),
        V,
    ),
    "nonzero": (lambda x: jnp.nonzero(x > 0, size=4, fill_value=-1), V),
    "searched": (
        lambda x: [
            jnp.searchsorted(jnp.array([-jnp.inf, -0.0, 0.0, 1.0, jnp.nan]), x, side=s)
            for s in ("left", "right")
        ],
        np.array([np.nan, -np.nan, 0.0, -0.0, 2.0, -np.inf]),
    ),
    "cut windows": (
        lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 2), ((-1, 1), (0, -1))),
        A,
    ),
    "cut pool": (
        lambda x: lax.reduce_window(
            x, -jnp.inf, lax.max, (1, 2, 1), (1,) * 3, ((0, 0), (-1, 1), (0, 0))
        ),
        IMAGE[0],
    ),
}


@pytest.mark.parametrize("name", WITHOUT_GRADIENTS)
def test_values_are_those_of_jax(name):
    fn, array = WITHOUT_GRADIENTS[name]
    (ours,) = our_forms(fn, [array], None)
    for a, b in zip(ours, jax.tree.leaves(fn(jnp.asarray(array))), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, 1e-12)


# --- every primitive ---------------------------------------------------------------------------


def test_every_primitive_has_a_form_or_a_reason():
    names = {getattr(primitives, n).name for n in dir(primitives) if n.endswith("_p")}
    assert {name for name in names if not is_known(name)} == names & LEFT_OUT.keys()
    assert not [name for name in LEFT_OUT if is_known(name)]


EDGES = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0])
INTEGERS = np.array([0, 1, -1, 2, -2, 7, -7, 127, -128], "int8")
ONE = """
    sign floor ceil exp exp2 expm1 log log1p sqrt cbrt sin cos tan sinh cosh tanh asin acos atan
    asinh atanh logistic is_finite neg square erf erfc erf_inv bitwise_not population_count clz abs
"""
TWO = """
    add sub mul div rem pow max min eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor shift_left
    shift_right_logical shift_right_arithmetic
"""
TIES = {"abs": "0 at 0, where JAX has 1", "pow": "finite at 0**0, where JAX has NaN"}
"""Where a gradient is another one, and which."""


@pytest.mark.parametrize("name", every(1, [*ONE.split(), *TWO.split()]))
def test_numbers_at_edges_are_those_of_jax(name):
    """Values and dtypes, and gradients where the derivative of JAX is finite."""
    fn = getattr(lax, name)
    for row in (EDGES, INTEGERS, INTEGERS.view("uint8"), np.array([True, False])):
        pair = [np.repeat(row, len(row)), np.tile(row, len(row))] if name in TWO.split() else [row]
        given = [jnp.asarray(a) for a in pair]
        try:
            want = fn(*given)
        except TypeError:
            continue  # not of this dtype in JAX
        smooth = row.dtype.kind == "f" and want.dtype.kind == "f" and name not in TIES
        with gg.Graph(), np.errstate(all="ignore"):
            xs = [gg.placeholder(a.shape, a.dtype) for a in pair]
            y = gg.interop.open_jax(fn, *xs)
            dxs = gg.gradients(gg.sum(y), xs, unconnected="zero") if smooth else []
            got, *slopes = gg.compile(xs, [y, *dxs], backend="numpy")(*pair)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, 1e-12, equal_nan=True)
        if smooth:
            theirs = jax.grad(lambda *a: jnp.sum(fn(*a)), tuple(range(len(pair))))(*given)
            for a, b in zip(slopes, map(np.asarray, theirs), strict=True):
                finite = np.isfinite(b)
                np.testing.assert_allclose(a[finite], b[finite], 1e-9)


# --- rules, names, parameters ------------------------------------------------------------------


@jax.custom_vjp
def passes_on(x):
    return jnp.sign(x)


passes_on.defvjp(lambda x: (passes_on(x), x), lambda x, g: (jnp.where(jnp.abs(x) < 1, 2 * g, 0.0),))


@jax.custom_jvp
def doubled(x):
    return x**2


doubled.defjvps(lambda dx, y, x: 4 * x**2 * dx)
ROW = np.array([-2.0, 0.5, 0.75])


def gradients_of(fn, orders=2, **options):
    with gg.Graph():
        x = gg.placeholder((3,))
        y, found = gg.interop.open_jax(fn, x), []
        for _ in range(orders):
            (y,) = gg.gradients(gg.sum(y * y), [x], unconnected="zero", **options)
            found.append(y)
        return gg.compile(x, found)(ROW)


def theirs(fn, orders=2):
    found, last = [], fn
    for _ in range(orders):
        last = jax.grad(lambda x, f=last: jnp.sum(f(x) ** 2))
        found.append(last(jnp.asarray(ROW)))
    return found


@pytest.mark.parametrize(
    "fn",
    [
        passes_on,
        doubled,
        lambda x: doubled(passes_on(x) * x),
        jax.vmap(doubled),
        lambda x: lax.cond(x[0] < 0, doubled, passes_on, x),
        jax.jit(lambda x: jax.checkpoint(doubled)(x) + x),
    ],
)
def test_S44_rules_of_jax_are_regions_at_every_order(fn):
    for a, b in zip(gradients_of(fn), theirs(fn), strict=True):
        np.testing.assert_allclose(a, b, 1e-12)


def test_S44_rules_in_loops_count_at_every_order():
    """As in the runs one after the other, where JAX keeps them; in its scan it loses them."""

    def step(carry, row):
        return doubled(carry) * 0.3 + row, carry

    looped = gradients_of(lambda x: lax.scan(step, x, jnp.stack([x, x]))[0])
    for a, b in zip(looped, theirs(lambda x: step(step(x, x)[0], x)[0]), strict=True):
        np.testing.assert_allclose(a, b, 1e-12)


def test_S05_S44_a_rule_of_jax_can_be_switched_off_and_replaced():
    (off,) = gradients_of(doubled, 1, overrides="none")
    np.testing.assert_allclose(off, 2 * ROW**2 * 2 * ROW)
    with gg.Graph() as graph:
        x = gg.placeholder((3,))
        y = gg.interop.open_jax(lambda x: doubled(x) + passes_on(x), x)
        assert [region.name for region in graph.regions] == ["doubled", "passes_on"]
        rules = {graph.regions[0]: lambda site, dy: 10 * dy}
        (dx,) = gg.gradients([gg.sum(y)], [x], overrides=rules)
        np.testing.assert_allclose(gg.compile(x, dx)(ROW), 10 + np.where(np.abs(ROW) < 1, 2.0, 0))


def test_functions_of_jax_nn_are_ours():
    with gg.Graph() as graph:
        x = gg.placeholder((3, 4))
        gg.interop.open_jax(lambda x: [jax.nn.relu(x), jax.nn.softmax(x, 0)], x)
        assert {"Relu", "Softmax"} <= {node.type for node in graph.nodes}
        assert not graph.regions
        y = gg.interop.open_jax(lambda x: jax.nn.relu(x) * x, x)
        graph.mark(gg.select.op("Relu"), gg.rules.guided())
        assert gg.gradients([gg.sum(y)], [x])


def relu(x):
    return jnp.maximum(x, 0) * 3


def test_what_is_only_named_alike_stays_what_it_is():
    for fn in (relu, jax.jit(relu)):
        with gg.Graph() as graph:
            x = gg.placeholder((3,))
            y = gg.interop.open_jax(fn, x)
            assert "Relu" not in {node.type for node in graph.nodes}
            np.testing.assert_array_equal(gg.compile(x, y)(ROW), 3 * np.maximum(ROW, 0))


def scoped(params, x):
    with jax.named_scope("encoder"):
        y = jnp.tanh(x @ params["w"]) + params["rest"][0]
    return {"y": y, "count": params["count"] + 1}


def test_names_scopes_lines_and_parameters():
    params = {"w": numbers(3, 2), "rest": [np.ones(2)], "count": np.array(3)}
    with gg.Graph() as graph:
        x = gg.placeholder((4, 3), name="x")
        made = gg.interop.open_jax(scoped, params, x)
        assert set(made) == {"y", "count"}
        assert [v.node.name for v in graph.variables] == ["rest/0", "w"]
        tanh = next(node for node in graph.nodes if node.type == "Tanh")
        assert tanh.name.startswith("encoder/")
        assert tanh.where == f"test_open_jax.py:{scoped.__code__.co_firstlineno + 2}"
    with gg.Graph() as graph:
        gg.interop.open_jax(scoped, params, gg.placeholder((4, 3)), parameters="constants")
        assert not graph.variables


def test_open_lengths_stay_open():
    def fn(x):
        return (x - x.mean(0)) @ jnp.ones((3, 2)) + jnp.concatenate([x, x])[: x.shape[0], :2]

    with gg.Graph():
        x = gg.placeholder(("N", 3))
        y = gg.interop.open_jax(fn, x)
        assert y.shape == ("N", 2)
        run = gg.compile(x, [y, gg.gradients(gg.sum(gg.sin(y)), x)])
    for n in (1, 2, 5):
        array = numbers(n, 3)
        grad = jax.grad(lambda a: jnp.sum(jnp.sin(fn(a))))(jnp.asarray(array))
        np.testing.assert_allclose(run(array)[0], fn(jnp.asarray(array)), 1e-12)
        np.testing.assert_allclose(run(array)[1], grad, 1e-12)


@pytest.mark.parametrize("make", [jax.random.key, jax.random.PRNGKey])
def test_random_numbers_are_those_of_jax(make):
    def draws(key):
        first, second = jax.random.split(key)
        return [
            jax.random.normal(first, (2, 3)),
            jax.random.uniform(second, (4,)),
            jax.random.bernoulli(jax.random.fold_in(key, 7), 0.3, (5,)),
            jax.random.permutation(first, 6),
            jax.random.randint(second, (4,), 0, 10),
        ]

    with gg.Graph():
        made = gg.evaluate(gg.interop.open_jax(draws, make(3)))
    for a, b in zip(made, draws(make(3)), strict=True):
        np.testing.assert_allclose(a, b, 1e-6)
        assert a.dtype == b.dtype


def test_S44_what_has_no_form_is_said_at_once():
    def fn(x):
        jax.debug.print("{}", x)
        y = x.at[0].apply(jnp.sin)
        y += lax.scan(lambda c, row: (jnp.linalg.eig(c)[1].real, row), x, x)[0]
        return jnp.linalg.eig(y)[0].real + jax.random.gamma(jax.random.key(0), 2.0)

    with gg.Graph() as graph:
        x = gg.placeholder((3, 3))
        with pytest.raises(gg.GraphError) as caught:
            gg.interop.open_jax(fn, x)
        with pytest.raises(TypeError, match="takes a function"):
            gg.interop.open_jax(3, x)
        with pytest.raises(ValueError, match="parameters is one of"):
            gg.interop.open_jax(jnp.sin, x, parameters="all")
        assert len(graph.nodes) == 1
    file, line = "test_open_jax.py", fn.__code__.co_firstlineno
    rows = str(caught.value).splitlines()[1:-1]
    for row, name, at in zip(rows, NO_FORM, (1, 3, 4, 2), strict=True):
        assert row.startswith(f"  {name}, first at {file}:{line + at}"), row


NO_FORM = ("debug_print: 1 time", "eig: 2 times", "random_gamma: 1 time", "scatter: 1 time")


@pytest.mark.parametrize(
    ("fn", "args", "said"),
    [
        (lambda y: lax.conv(y, y, (1,) * 4, "VALID"), [np.ones((1, 2, 2, 2, 2, 1))], "4 spatial"),
        (lambda x: x.at[0].apply(jnp.sin), [A], "scatter.*with a function"),
        (lambda x: (jax.random.key(0) == jax.random.key(1)) + x, [A], "eq.*of random keys"),
        (lambda p, x: p["w"] @ x + jnp.linalg.eig(x)[0].real, [{"w": M}, M], "eig"),
        (lambda x, y: x + y, [{"Exp_3": A}], "unsupported operand|argument"),
    ],
)
def test_S44_an_error_leaves_nothing_in_the_graph(fn, args, said):
    with gg.Graph() as graph:
        x = gg.placeholder((4, 4), name="x")
        with gg.override_gradient("Identity"):
            z = gg.exp(x)
        before = len(graph.nodes), len(graph.regions), graph.draws
        with pytest.raises((gg.GraphError, TypeError), match=said):
            gg.interop.open_jax(fn, *args)
        with pytest.raises(gg.GraphError, match="belongs to"):
            gg.interop.open_jax(lambda p, x, y: p + x + y, np.ones(4), x, other_graph())
        assert (len(graph.nodes), len(graph.regions), graph.draws) == before
        assert z.graph is graph


def test_a_name_that_is_one_of_unnamed_nodes_gets_a_sign():
    with gg.Graph() as graph:
        gg.interop.open_jax(lambda x: jnp.exp(x["a"]["Exp_3"]), {"a": {"Exp_3": A}})
    assert [v.node.name for v in graph.variables] == ["a/Exp_3_"]


def other_graph():
    with gg.Graph():
        return gg.placeholder((4, 4))


def test_the_graph_of_the_tensors_is_built_in_where_nobody_entered_one():
    x = other_graph()
    y = gg.interop.open_jax(lambda p, x: p @ x, M, x)
    assert y.graph is x.graph
    assert len(x.graph.variables) == 1
