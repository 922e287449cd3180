"""Convolutions, pools, losses and their like against naive loops, closed forms and PyTorch."""

import itertools
import math
import warnings

import numpy as np
import pytest
import scipy.special

import graphgrad as gg

RNG = np.random.default_rng(0)
nn = gg.nn


def run(fn, *arrays, backend="numpy"):
    with gg.Graph():
        xs = [gg.placeholder(a.shape, a.dtype) for a in arrays]
        return gg.compile(xs, fn(*xs), backend=backend)(*arrays)


def gradients(fn, *arrays):
    """Value and first gradients of its sum, times weights."""
    with gg.Graph():
        xs = [gg.placeholder(a.shape, a.dtype) for a in arrays]
        y = fn(*xs)
        weights = np.random.default_rng(1).normal(size=y.shape).astype(y.dtype)
        dxs = gg.gradients([gg.sum(y * weights)], xs, unconnected="zero")
        return gg.evaluate([y, *dxs], dict(zip(xs, arrays, strict=True)))


def slope_agrees(fn, *arrays, order=2):
    """Gradients of both orders against differences along a line."""
    rng = np.random.default_rng(2)
    for _ in range(order):
        vs = [rng.normal(size=a.shape) for a in arrays]
        weights = rng.normal(size=run(fn, *arrays).shape)
        with gg.Graph():
            xs = [gg.placeholder(a.shape) for a in arrays]
            y = gg.sum(fn(*xs) * weights)
            dxs = gg.gradients([y], xs, unconnected="zero")
            f = gg.compile(xs, [y, *dxs], backend="numpy")
        ends = [f(*[a + s * v for a, v in zip(arrays, vs, strict=True)])[0] for s in (1e-6, -1e-6)]
        by_rule = math.fsum(np.vdot(g, v) for g, v in zip(f(*arrays)[1:], vs, strict=True))
        assert by_rule == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-6)
        fn = first_gradient(fn, weights)


def first_gradient(fn, weights):
    def gradient(*xs):
        (dx,) = gg.gradients([gg.sum(fn(*xs) * weights)], xs[:1])
        return dx

    return gradient


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_slopes_at_the_ends_of_the_line(backend):
    ends = np.array([-np.inf, -1e200, 1e200, np.inf, np.nan])

    def slope(fn):
        return lambda x: gg.gradients(fn(x), x)

    found = [run(slope(f), ends, backend=backend) for f in (nn.squareplus, nn.soft_sign)]
    np.testing.assert_array_equal(found, [[0, 0, 1, 1, np.nan], [0, 0, 0, 0, np.nan]])
    far = np.array([400.0, 700.0])  # where the square of exp(x) is not a number
    second = run(slope(slope(nn.log1mexp)), far, backend=backend)
    np.testing.assert_allclose(second, -np.exp(-far), rtol=1e-13)


# --- windows -----------------------------------------------------------------------------------


def naive_conv(x, w, strides, pads, dilation, groups):
    """(N, ..., C) with (..., C / groups, out), by loops over places and taps."""
    rank = x.ndim - 2
    x = np.pad(x, [(0, 0), *pads, (0, 0)])
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape, dilation)]
    out = [(n - r) // s + 1 for n, r, s in zip(x.shape[1:-1], reach, strides)]
    z = np.zeros((x.shape[0], *out, w.shape[-1]))
    c, o = x.shape[-1] // groups, w.shape[-1] // groups
    for at in itertools.product(*map(range, out)):
        for tap in itertools.product(*map(range, w.shape[:rank])):
            here = [i * s + k * d for i, s, k, d in zip(at, strides, tap, dilation)]
            pixel = x[(slice(None), *here)]
            for g in range(groups):
                ins, outs = slice(g * c, (g + 1) * c), slice(g * o, (g + 1) * o)
                z[(slice(None), *at, outs)] += pixel[:, ins] @ w[tap][:, outs]
    return z


GEOMETRIES = [(1, 0, 1, 1), (2, 1, 1, 2), (1, 2, 2, 1), (2, 1, 2, 4)]
LENGTHS = {1: (7,), 2: (5, 6), 3: (4, 5, 3)}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(("s", "p", "d", "g"), GEOMETRIES)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_conv_and_its_adjoint(rank, s, p, d, g, backend):
    x = RNG.normal(size=(2, *LENGTHS[rank], 4))
    w = RNG.normal(size=(*(2, 3, 2)[:rank], 4 // g, 8))
    naive = naive_conv(x, w, (s,) * rank, [(p, p)] * rank, (d,) * rank, g)
    found = run(lambda x, w: nn.conv(x, w, s, p, dilation=d, groups=g), x, w, backend=backend)
    np.testing.assert_allclose(found, naive, rtol=1e-10, atol=1e-12)
    z = RNG.normal(size=naive.shape)
    with gg.Graph():
        least = nn.conv_transpose(z, w, s, p, dilation=d, groups=g).shape[1:-1]
    more = tuple(n - m for n, m in zip(LENGTHS[rank], least))
    back = run(
        lambda z, w: nn.conv_transpose(z, w, s, p, dilation=d, groups=g, output_padding=more),
        z,
        w,
        backend=backend,
    )
    assert back.shape == x.shape
    assert np.vdot(back, x) == pytest.approx(np.vdot(z, naive))


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_conv_over_three_axes_of_an_unknown_number_of_examples(layout):
    x, w = RNG.normal(size=(2, 4, 5, 3, 4)), RNG.normal(size=(2, 2, 2, 2, 6))
    naive = naive_conv(x, w, (1, 2, 1), [(1, 0)] * 3, (1, 1, 1), 2)
    move = layout == "NCHW"
    x = np.moveaxis(x, -1, 1) if move else x
    with gg.Graph():
        images = gg.placeholder((None, *x.shape[1:]))
        z = nn.conv(images, w, (1, 2, 1), ((1, 0),) * 3, layout, groups=2)
        found = gg.evaluate(z, {images: x})
        (dx,) = gg.gradients([gg.sum(z)], [images])
        assert gg.evaluate(dx, {images: x}).shape == x.shape
    np.testing.assert_allclose(np.moveaxis(found, 1, -1) if move else found, naive)


def test_conv_over_three_axes_has_both_gradients():
    x, w = RNG.normal(size=(1, 3, 4, 3, 2)), RNG.normal(size=(2, 2, 2, 1, 2))
    slope_agrees(lambda x, w: nn.conv(x, w, 2, 1, groups=2), x, w)
    slope_agrees(lambda x, w: nn.conv_transpose(x, w, 2, 0, groups=2, output_padding=1), x, w)


def test_windows_of_one_pixel_have_a_gradient_on_every_backend():
    x = RNG.normal(size=(1, 3, 3, 2))
    with gg.Graph():
        t = gg.placeholder(x.shape)
        (dx,) = gg.gradients([gg.sum(nn.max_pool(t, 1) * 2.0)], [t])
        for backend in ("numpy", "llvm"):
            assert (gg.compile(t, dx, backend=backend)(x) == 2).all()


def naive_windows(x, k, s, low, high, out):
    """For each place of the output, the pixels inside of (N, C, ...)."""
    for at in itertools.product(*map(range, out)):
        starts = [i * s - low for i in at]
        cut = [slice(max(a, 0), a + k) for a in starts]
        reach = [min(a + k, n + high) - a for a, n in zip(starts, x.shape[2:])]
        yield at, x[(slice(None), slice(None), *cut)], math.prod(reach)


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize(("k", "s", "p"), [(2, 2, 0), (3, 2, 1), (2, 1, 1)])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pools(rank, k, s, p, ceil):
    x = RNG.integers(0, 5, size=(2, 3, *LENGTHS[rank])).astype("float64")
    args = (k, s, p, "NCHW")
    largest, places = (
        run(lambda t, i=i: nn.max_pool_with_indices(t, *args, ceil)[i], x) for i in (0, 1)
    )
    left_out = run(lambda t: nn.avg_pool(t, *args, ceil), x)
    counted = run(lambda t: nn.avg_pool(t, *args, ceil, True), x)
    norm = run(lambda t: nn.lp_pool(t, 2, *args, ceil), x)
    assert np.array_equal(run(lambda t: nn.max_pool(t, *args, ceil_mode=ceil), x), largest)
    flat = x.reshape(2, 3, -1)
    for at, part, size in naive_windows(x, k, s, p, p, largest.shape[2:]):
        here, axes = (slice(None), slice(None), *at), tuple(range(2, x.ndim))
        np.testing.assert_array_equal(largest[here], part.max(axes))
        picked = np.take_along_axis(flat, places[here][..., None], 2)[..., 0]
        np.testing.assert_array_equal(picked, part.max(axes))
        np.testing.assert_allclose(left_out[here], part.mean(axes))
        np.testing.assert_allclose(counted[here], part.sum(axes) / size)
        np.testing.assert_allclose(norm[here], np.sqrt((part**2).sum(axes)))


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_adaptive_pools(rank, size):
    x = RNG.normal(size=(2, *LENGTHS[rank], 3))
    mean = run(lambda t: nn.adaptive_avg_pool(t, size), x)
    largest = run(lambda t: nn.adaptive_max_pool(t, size), x)
    for at in itertools.product(range(size), repeat=rank):
        cut = [slice(i * n // size, -(-(i + 1) * n // size)) for i, n in zip(at, LENGTHS[rank])]
        part, axes = x[(slice(None), *cut)], tuple(range(1, rank + 1))
        np.testing.assert_allclose(mean[(slice(None), *at)], part.mean(axes))
        np.testing.assert_array_equal(largest[(slice(None), *at)], part.max(axes))
    slope_agrees(lambda t: nn.adaptive_max_pool(t, size), x, order=1)


def test_unpooling_puts_back_what_pooling_took_and_a_place_named_twice_once():
    x = RNG.normal(size=(2, 4, 4, 3))
    with gg.Graph():
        y, places = nn.max_pool_with_indices(x, 3, 1)
        back = gg.evaluate(nn.max_unpool(y, places, (4, 4)))
    assert set(np.unique(back)) <= {0.0, *x.ravel()}
    np.testing.assert_array_equal(back[back != 0], x[back != 0])


def test_fold_is_the_adjoint_of_unfold_and_convolution_is_a_product_with_its_rows():
    x, w = RNG.normal(size=(2, 5, 4, 3)), RNG.normal(size=(2, 3, 3, 4))
    rows = run(lambda t: nn.unfold(t, (2, 3), 2, 1, dilation=(1, 2)), x)
    z = run(lambda t, w: nn.conv(t, w, 2, 1, dilation=(1, 2)), x, w)
    product = rows @ w.transpose(2, 0, 1, 3).reshape(-1, 4)
    np.testing.assert_allclose(product.reshape(z.shape), z)
    other = RNG.normal(size=rows.shape)
    back = run(lambda t: nn.fold(t, (5, 4), (2, 3), 2, 1, dilation=(1, 2)), other)
    assert np.vdot(back, x) == pytest.approx(np.vdot(other, rows))


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_shuffles_undo_each_other(layout):
    x = RNG.normal(size=(2, 4, 6, 8))
    shuffled = run(lambda t: nn.pixel_shuffle(t, 2, layout), x)
    np.testing.assert_array_equal(run(lambda t: nn.pixel_unshuffle(t, 2, layout), shuffled), x)
    dealt = run(lambda t: nn.channel_shuffle(t, 2, layout), x)
    count = x.shape[1 if layout == "NCHW" else 3] // 2
    np.testing.assert_array_equal(run(lambda t: nn.channel_shuffle(t, count, layout), dealt), x)


# --- sizes of images ---------------------------------------------------------------------------


def test_interpolation_of_lines_is_exact_and_keeps_what_is_constant():
    x = np.arange(5.0).reshape(1, 5, 1)
    found = run(lambda t: nn.interpolate(t, 9, mode="linear", align_corners=True), x)
    np.testing.assert_allclose(found[0, :, 0], np.linspace(0, 4, 9))
    for mode in ("nearest", "nearest-exact", "linear", "cubic", "area"):
        same = run(lambda t, m=mode: nn.interpolate(t, scale_factor=1.7, mode=m), x * 0 + 3)
        np.testing.assert_allclose(same, 3.0)


def test_sampling_at_the_grid_of_the_identity_is_the_image():
    x, theta = RNG.normal(size=(1, 3, 4, 2)), np.eye(2, 3)[None]
    for corners, mode in itertools.product((True, False), ("bilinear", "nearest", "bicubic")):
        with gg.Graph():
            grid = nn.affine_grid(theta, (3, 4), corners)
            y = gg.evaluate(nn.grid_sample(x, grid, mode, align_corners=corners))
        np.testing.assert_allclose(y, x, atol=1e-12)
    slope_agrees(nn.grid_sample, x, RNG.uniform(-0.9, 0.9, size=(1, 2, 2, 2)), order=1)


# --- losses ------------------------------------------------------------------------------------


def naive_ctc(logs, targets, blank):
    """-log of the sum over all sequences that collapse to the targets."""
    total = 0.0
    for path in itertools.product(range(logs.shape[1]), repeat=len(logs)):
        said = [c for i, c in enumerate(path) if (i == 0 or path[i - 1] != c) and c != blank]
        if said == list(targets):
            total += math.exp(sum(logs[t, c] for t, c in enumerate(path)))
    return -math.log(total) if total else math.inf


@pytest.mark.parametrize("blank", [0, 2])
def test_ctc_sums_over_all_ways_to_say_the_targets(blank):
    logs = scipy.special.log_softmax(RNG.normal(size=(5, 4, 3)), 2)
    a, b = [c for c in range(3) if c != blank]
    targets = np.array([[a, b], [a, a], [b, a], [b, b]])
    steps, counts = np.array([5, 3, 4, 1]), np.array([2, 2, 1, 2])
    expected = [
        naive_ctc(logs[:t, n], targets[n, :s], blank) for n, (t, s) in enumerate(zip(steps, counts))
    ]
    for backend in ("numpy", "llvm", "jax"):
        if backend == "jax":
            pytest.importorskip("jax")
        found = run(
            lambda x: nn.ctc_loss(x, targets, steps, counts, blank, "none"), logs, backend=backend
        )
        np.testing.assert_allclose(found, expected)
    first = logs[:, :3]
    slope_agrees(lambda x: nn.ctc_loss(x, targets[:3], steps[:3], counts[:3], blank), first)
    with gg.Graph():
        t = gg.placeholder(logs.shape)
        loss = nn.ctc_loss(t, targets, steps, counts, blank, zero_infinity=True)
        (dx,) = gg.gradients([loss], [t])
        value, slope = gg.evaluate([loss, dx], {t: logs})
    assert np.isfinite(value)
    assert np.isfinite(slope).all()
    assert (slope[:, 3] == 0).all()


def test_labels_that_are_ignored_do_not_count():
    x, weight = RNG.normal(size=(4, 3)), np.array([0.5, 1.0, 2.0])
    labels = np.array([2, 7, 0, 1])
    kept = np.array([0, 2, 3])
    logs = scipy.special.log_softmax(x, 1)
    w = weight[labels[kept]]
    expected = -(w * logs[kept, labels[kept]]).sum() / w.sum()
    for loss in (
        lambda t: nn.nll_loss(nn.log_softmax(t), labels, weight, 7),
        lambda t: nn.cross_entropy(t, labels, reduction="mean", weight=weight, ignore_index=7),
    ):
        value, dx = gradients(loss, x)
        assert value == pytest.approx(expected)
        assert (dx[1] == 0).all()
        assert (dx[kept] != 0).all()


@pytest.mark.parametrize("loss", [nn.nll_loss, nn.multi_margin_loss, nn.cross_entropy])
def test_a_label_that_is_no_class_is_nan_and_not_the_last_class(loss):
    found = run(lambda t: loss(t, np.array([-1, 0]), reduction="none"), np.zeros((2, 3)))
    assert np.isnan(found[0])
    assert not np.isnan(found[1])


def test_smoothed_labels_are_probabilities():
    x, labels = RNG.normal(size=(4, 3)), np.array([2, 1, 0, 1])
    spread = np.eye(3)[labels] * 0.7 + 0.1
    a = run(lambda t: nn.cross_entropy(t, labels, label_smoothing=0.3), x)
    np.testing.assert_allclose(a, run(lambda t: nn.cross_entropy(t, spread), x))


@pytest.mark.parametrize(
    "loss",
    [
        nn.mse_loss,
        nn.l1_loss,
        nn.huber_loss,
        nn.binary_cross_entropy,
        nn.kl_div,
        nn.soft_margin_loss,
    ],
)
def test_shapes_that_would_broadcast_by_accident_are_an_error(loss):
    with pytest.raises(gg.ShapeError, match="one shape"):
        loss(np.ones((3, 1)), np.ones(3))
    with pytest.raises(ValueError, match="reduction is"):
        loss(np.ones(3), np.ones(3), reduction="average")


def test_certain_answers_are_free_and_their_gradients_finite():
    p, t = np.array([0.0, 1.0]), np.array([0.0, 1.0])
    value, dp, _ = gradients(lambda p, t: nn.binary_cross_entropy(p, t, reduction="none"), p, t)
    assert value.tolist() == [0, 0]
    np.testing.assert_allclose(np.abs(dp), np.abs(np.random.default_rng(1).normal(size=2)))
    logits = np.array([800.0, -800.0])
    value, dx, _ = gradients(
        lambda x, t: nn.binary_cross_entropy_with_logits(x, t, reduction="none"), logits, t
    )
    assert value.tolist() == [800, 800]
    assert np.isfinite(dx).all()


# --- attention ---------------------------------------------------------------------------------


def naive_attention(q, k, v, keep):
    scores = np.where(keep, q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), -np.inf)
    return scipy.special.softmax(scores, -1) @ v


def test_attention_takes_part_of_what_the_mask_allows_and_nothing_where_it_allows_nothing():
    q, k, v = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(2, 5, 4)), RNG.normal(size=(2, 5, 6))
    keep = RNG.uniform(size=(3, 5)) > 0.4
    keep[0], keep[1, 0] = True, True
    found = run(lambda *t: nn.scaled_dot_product_attention(*t, keep), q, k, v)
    keep[2, 0] = True
    keep2 = keep.copy()
    keep2[2] = False
    np.testing.assert_allclose(found[:, :2], naive_attention(q, k, v, keep)[:, :2])
    for mask in (keep2, np.where(keep2, 0.0, -np.inf)):
        value, *grads = gradients(
            lambda *t, m=mask: nn.scaled_dot_product_attention(*t, m), q, k, v
        )
        assert (value[:, 2] == 0).all()
        assert (grads[0][:, 2] == 0).all()
        assert all(np.isfinite(g).all() for g in grads)
    causal = run(lambda *t: nn.scaled_dot_product_attention(*t, is_causal=True), q, k, v)
    np.testing.assert_allclose(causal, naive_attention(q, k, v, np.tri(3, 5, dtype=bool)))


def test_attention_of_nan_is_nan():
    q = np.ones((1, 2, 2))
    q[0, 0, 0] = np.nan
    mask = np.zeros((2, 2))
    found = run(lambda t: nn.scaled_dot_product_attention(t, np.ones((1, 2, 2)), t, mask), q)
    assert np.isnan(found[0, 0]).any()


def test_heads_are_shared_in_either_layout():
    q, k, v = (RNG.normal(size=(2, 5, n, 8)) for n in (4, 2, 2))
    a = run(lambda *t: nn.dot_product_attention(*t, is_causal=True), q, k, v)
    first = [np.moveaxis(t, 2, 1) for t in (q, k, v)]
    b = run(lambda *t: nn.scaled_dot_product_attention(*t, is_causal=True, enable_gqa=True), *first)
    np.testing.assert_allclose(np.moveaxis(a, 2, 1), b)


@pytest.mark.parametrize("length", [4, None])
def test_attention_of_unknown_lengths_and_under_vmap(length):
    x = RNG.normal(size=(3, 4, 2))
    whole = run(lambda t: nn.scaled_dot_product_attention(t, t, t, is_causal=True), x)
    with gg.Graph(), warnings.catch_warnings():
        warnings.simplefilter("error", gg.PerformanceWarning)
        t = gg.placeholder((None, length, 2))
        each = gg.vmap(lambda q: nn.scaled_dot_product_attention(q, q, q, is_causal=True))(t)
        np.testing.assert_allclose(gg.evaluate(each, {t: x}), whole)


# --- normalisation, dropout, tables ------------------------------------------------------------


def test_running_moments_move_towards_those_of_the_batch_and_are_used_after_training():
    x, mean, var = RNG.normal(size=(6, 3)), np.ones(3), np.full(3, 2.0)
    with gg.Graph():
        y, m, v = gg.evaluate(nn.batch_norm(x, running=(mean, var), momentum=0.25))
        z, m2, _ = gg.evaluate(nn.batch_norm(x, running=(mean, var), training=False))
    np.testing.assert_allclose(m, 0.75 * mean + 0.25 * x.mean(0))
    np.testing.assert_allclose(v, 0.75 * var + 0.25 * x.var(0, ddof=1))
    np.testing.assert_allclose(y, (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5))
    np.testing.assert_allclose(z, (x - mean) / np.sqrt(var + 1e-5))
    np.testing.assert_array_equal(m2, mean)


def test_norms_of_groups():
    x = RNG.normal(size=(2, 5, 6)) * 3 + 1

    def normal(t, axes):
        return (t - t.mean(axes, keepdims=True)) / np.sqrt(t.var(axes, keepdims=True) + 1e-5)

    groups = normal(x.reshape(2, 5, 3, 2), (1, 3)).reshape(x.shape)
    np.testing.assert_allclose(run(lambda t: nn.group_norm(t, 3), x), groups)
    np.testing.assert_allclose(run(nn.instance_norm, x), normal(x, 1))
    np.testing.assert_allclose(run(nn.standardize, x), normal(x, 2))
    rms = x / np.sqrt((x**2).mean(-1, keepdims=True) + np.finfo(float).eps)
    np.testing.assert_allclose(run(nn.rms_norm, x), rms)
    slope_agrees(lambda t: nn.group_norm(t, 3), x)
    slope_agrees(lambda t: nn.local_response_norm(t, 3, 0.5), x)


def test_dropped_channels_are_dropped_whole_and_alpha_dropout_keeps_the_moments():
    ones = np.ones((40, 5, 8))
    y = run(lambda t: nn.channel_dropout(t, 0.25, seed=1), ones)
    assert (y == y[:, :1]).all()
    assert set(np.unique(y)) == {0.0, 1 / 0.75}
    x = RNG.normal(size=20_000)
    z = run(lambda t: nn.alpha_dropout(t, 0.3, seed=1), x)
    assert abs(z.mean()) < 0.05
    assert abs(z.std() - 1) < 0.05


def test_the_padding_row_is_read_and_has_no_gradient():
    table, places = RNG.normal(size=(4, 3)), np.array([[0, 2], [-2, 1]])
    value, dtable = gradients(lambda t: nn.embedding(places, t, -2), table)
    np.testing.assert_array_equal(value, table[places])
    assert (dtable[2] == 0).all()
    assert (dtable[[0, 1]] != 0).all()
    bags = run(lambda t: nn.embedding_bag(places, t, "mean", padding_idx=2), table)
    np.testing.assert_allclose(bags, table[[0, 1]])


SMOOTH = "mish selu soft_sign hard_silu sparse_plus squareplus celu softshrink relu6 hard_sigmoid "
SMOOTH += "tanhshrink rrelu hardshrink"


@pytest.mark.parametrize(
    "fn",
    [getattr(nn, name) for name in SMOOTH.split()],
    ids=lambda f: f.__name__,
)
def test_activations_far_out_are_finite_and_nan_stays(fn):
    x = np.array([-1e4, -800.0, -1.5, 0.0, 0.7, 800.0, 1e4])
    value, dx = gradients(fn, x)
    assert np.isfinite(value).all()
    assert np.isfinite(dx).all()
    assert np.isnan(run(fn, np.array([np.nan]))).all()
    slope_agrees(fn, np.array([-4.0, -0.8, 0.3, 2.0, 7.0]))


def test_digits_are_kept_where_the_plain_formula_loses_them():
    x = np.array([-1e8, -1e4])
    np.testing.assert_allclose(run(nn.squareplus, x), [1e-8, 1e-4 * (1 - 1e-8)], rtol=1e-14)
    y = np.array([1e-20, 50.0])
    np.testing.assert_allclose(run(nn.log1mexp, y), [np.log(1e-20), -np.exp(-50)], rtol=1e-14)


@pytest.mark.parametrize(
    "loss", [nn.mse_loss, nn.kl_div, nn.soft_margin_loss, nn.cosine_similarity]
)
def test_whole_targets_leave_the_dtype_of_what_is_compared_with_them(loss):
    with gg.Graph():
        x, t = gg.placeholder((2, 3), "float32"), gg.placeholder((2, 3), "int64")
        assert [loss(x, t).dtype, loss(t, t).dtype] == ["float32", "float64"]


def test_no_images_are_sampled_to_none():
    image, grid = np.ones((1, 0, 5, 5)), np.zeros((1, 0, 2, 2))
    y = run(lambda x, g: nn.grid_sample(x, g, "nearest", data_format="NCHW"), image, grid)
    assert y.shape == (1, 0, 0, 2)


@pytest.mark.parametrize("loss", [gg.nn.nll_loss, gg.nn.cross_entropy])
def test_the_weighted_mean_of_one_example_is_that_of_a_batch_of_one(loss):
    x, weight = np.array([-1.0, -2.0, -3.0]), np.array([0.5, 2.0, 3.0])
    one = loss(x, 1, weight=weight, reduction="mean")
    batch = loss(x[None], [1], weight=weight, reduction="mean")
    np.testing.assert_allclose(*gg.evaluate([one, batch]))


@pytest.mark.parametrize(
    "f",
    [
        gg.nn.normalize,
        lambda x: gg.nn.cosine_similarity(x, x),
        lambda x: gg.nn.local_response_norm(x, 3),
        lambda x: gg.nn.lp_pool(gg.expand_dims(x, 2), 2.0, 2),
        lambda x: gg.nn.batch_norm(
            x / 100, epsilon=1e-8, running=(0.0 * x[0], 0.0 * x[0]), training=False
        )[0],
        lambda x: gg.nn.batch_norm(x, running=(x[0], x[0]))[1] / 1e4,
    ],
)
def test_squares_and_epsilons_that_float16_does_not_hold_are_those_of_float32(f):
    x = np.array([[0.0, 0.0], [300.0, 400.0]], "float16")
    half, full = gg.evaluate([f(gg.constant(x)), f(gg.constant(x.astype("float32")))])
    assert half.dtype == "float16"
    assert np.isfinite(half).all()
    np.testing.assert_allclose(half.astype("float32"), full, 2e-3)
