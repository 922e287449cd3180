"""`gg.attribute`, each method against the same in NumPy; the rules by sign and the flat one."""

from functools import partial

import numpy as np
import pytest

import graphgrad as gg

RNG = np.random.default_rng(0)
W, B, V = RNG.normal(size=(3, 5)), RNG.normal(size=5), RNG.normal(size=(5, 2))
X = RNG.normal(size=(4, 3))
IMAGE, KERNEL = RNG.normal(size=(2, 4, 4, 2)), RNG.normal(size=(3, 3, 2, 3))
HEAD = RNG.normal(size=(3, 2))


@pytest.fixture(scope="module")
def mlp():
    with gg.Graph():
        x = gg.placeholder(("N", 3), name="x")
        return gg.compile(x, gg.nn.relu(x @ W + B) @ V)


@pytest.fixture(scope="module")
def cnn():
    """Images (N, C, H, W), as an exporter has them."""
    with gg.Graph():
        x = gg.placeholder(("N", 2, 4, 4), name="x")
        h = gg.nn.conv(x, KERNEL, data_format="NCHW") + np.full((3, 1, 1), 0.1)
        h = gg.identity(gg.nn.relu(h), name="features")
        return gg.compile(x, gg.mean(h, axis=(2, 3)) @ HEAD)


def slopes(x, seed, back=None):
    """The gradient of the MLP in NumPy; back: what a ReLU lets through of dy for h."""
    h, dy = x @ W + B, seed @ V.T
    return ((h > 0) * dy if back is None else back(h, dy)) @ W.T


ONE = np.eye(2)[np.zeros(4, int)]


def test_gradients_and_the_rules_that_bend_them(mlp):
    """The rules matter: guided and deconvnet differ from the gradient."""
    found = {
        how: gg.attribute(mlp, X, how, target=0).value
        for how in ("gradient", "saliency", "input_times_gradient", "guided_backprop", "deconvnet")
    }
    plain = slopes(X, ONE)
    guided = slopes(X, ONE, lambda h, dy: dy * (h > 0) * (dy > 0))
    np.testing.assert_allclose(found["gradient"], plain, atol=1e-12)
    np.testing.assert_allclose(found["saliency"], np.abs(plain), atol=1e-12)
    np.testing.assert_allclose(found["input_times_gradient"], X * plain, atol=1e-12)
    np.testing.assert_allclose(found["guided_backprop"], guided, atol=1e-12)
    waking = slopes(X, ONE, lambda h, dy: np.maximum(dy, 0))
    np.testing.assert_allclose(found["deconvnet"], waking, atol=1e-12)
    assert np.abs(guided - plain).max() > 0.1
    assert np.abs(waking - guided).max() > 0.1


def test_the_largest_number_is_explained_unless_a_target_is_named(mlp):
    y = mlp(X)
    found = gg.attribute(mlp, X, "gradient")
    np.testing.assert_array_equal(found.target[:, 0], y.argmax(1))
    np.testing.assert_allclose(found.scores, y.max(1))
    np.testing.assert_allclose(found.value, slopes(X, np.eye(2)[y.argmax(1)]), atol=1e-12)
    each = gg.attribute(mlp, X, "gradient", target=[0, 1, 0, 1])
    np.testing.assert_allclose(each.value, slopes(X, np.eye(2)[[0, 1, 0, 1]]), atol=1e-12)
    assert mlp(X) is not None  # the model is as it was
    with pytest.raises(gg.ShapeError, match="is not an index of an output"):
        gg.attribute(mlp, X, "gradient", target=2)


def test_a_question_leaves_the_model_as_it_is(mlp):
    graph = mlp.inputs[0].graph
    before = len(graph.nodes)
    for how in ("gradient", "lrp", "deeplift", "integrated_gradients"):
        gg.attribute(mlp, X, how)
    assert len(graph.nodes) == before


def test_integrated_gradients_add_up():
    """Of a cubic, Gauss's points are exact; the baseline matters."""
    with gg.Graph():
        x = gg.placeholder(("N", 3), name="x")
        model = gg.compile(x, gg.sum(x**3, axis=1))
    found = gg.attribute(model, X, "integrated_gradients", steps=5)
    np.testing.assert_allclose(found.value, X**3, atol=1e-12)
    assert abs(found.balance["rest"]) < 1e-12
    other = gg.attribute(model, X, "integrated_gradients", baseline=1.0, steps=5)
    np.testing.assert_allclose(other.value, X**3 - 1, atol=1e-12)


def test_smoothgrad_is_the_mean_at_the_points_of_the_seed():
    with gg.Graph():
        x = gg.placeholder(("N", 3), name="x")
        model = gg.compile(x, gg.sum(x**3, axis=1))
    found = gg.attribute(model, X, "smoothgrad", samples=4, stdev=0.5, seed=3)
    rng = np.random.default_rng(3)
    points = [X + rng.normal(scale=0.5, size=X.shape) for _ in range(4)]
    np.testing.assert_allclose(found.value, np.mean([3 * p**2 for p in points], 0))


def test_grad_cam_is_the_weighted_map(cnn):
    images = np.moveaxis(IMAGE, -1, 1)
    with gg.Graph():
        h = gg.nn.relu(gg.nn.conv(images, KERNEL, data_format="NCHW") + 0.1)
        features = gg.evaluate(h)
    weights = HEAD[:, 0] / 16  # of the mean over 16 places
    wanted = np.maximum((features * weights[:, None, None]).sum(1, keepdims=True), 0)
    found = gg.attribute(cnn, images, "grad_cam", target=0, layer="features")
    np.testing.assert_allclose(found.values["features"], wanted, atol=1e-12)
    assert wanted.max() > 0.01
    default = gg.attribute(cnn, images, "grad_cam", target=1, relu=False)
    assert default.value.shape == (2, 1, 4, 4)


def test_grad_cam_says_why_it_means_nothing(mlp, cnn):
    with pytest.raises(gg.GradientError, match="the model has no convolution"):
        gg.attribute(mlp, X, "grad_cam")
    with pytest.raises(gg.GradientError, match="Did you mean 'features'"):
        gg.attribute(cnn, np.moveaxis(IMAGE, -1, 1), "grad_cam", layer="featurs")


def convolution(layout, x, out, seed, size=3):
    """A convolution with a bias, in a layout."""
    rng = np.random.default_rng(seed)
    given = x.shape[-1 if layout == "NHWC" else 1]
    z = gg.nn.conv(x, rng.normal(size=(size, size, given, out)), data_format=layout)
    bias = rng.normal(size=out)
    return z + (bias if layout == "NHWC" else bias[:, None, None])


def plain(x, conv, axis):
    h = gg.nn.relu(conv(x, 4, 0))
    last = conv(h, 3, 1)
    return last, gg.nn.relu(last)


def residual(x, conv, axis):
    """Two blocks; the last shortcut is a convolution, and built after the main path."""
    h = gg.nn.relu(conv(x, 4, 0))
    h = gg.nn.relu(conv(h, 4, 1) + h)
    main = conv(gg.nn.relu(conv(h, 5, 2)), 5, 3)
    last = main + conv(h, 5, 4, 1)
    return last, gg.nn.relu(last)


def identity_residual(x, conv, axis):
    h = gg.nn.relu(conv(x, 4, 0))
    last = conv(gg.nn.relu(conv(h, 4, 1)), 4, 2) + h
    return last, gg.nn.relu(last)


def dense(x, conv, axis):
    """Each layer reads all before; a norm behind the last one."""
    h = conv(x, 3, 0)
    for i in range(2):
        new = conv(gg.nn.relu(h), 2, i + 1)
        last = h = gg.concat([h, new], axis)
    return last, gg.nn.relu(gg.nn.batch_norm(h, axis=axis)[0])


def gated(x, conv, axis):
    """Squeeze and excitation, and a head of convolutions on one place."""
    h = gg.nn.relu(conv(x, 4, 0))
    last = conv(h, 4, 1)
    places = (2, 3) if axis == 1 else (1, 2)
    gate = gg.nn.sigmoid(conv(gg.mean(last, places, keepdims=True), 4, 2, 1))
    y = gg.mean(gg.nn.silu(last * gate), places, keepdims=True)
    return last, conv(y, 4, 3, 1)


NETWORKS = (plain, residual, identity_residual, dense, gated)


@pytest.mark.parametrize("network", NETWORKS)
def test_grad_cam_takes_the_last_map_that_everything_reads(network):
    """In both layouts, against its definition on the tensor that the network's author says."""
    maps, image = [], np.random.default_rng(5).normal(size=(2, 6, 5, 3))
    for layout, axis, places in (("NHWC", 3, (1, 2)), ("NCHW", 1, (2, 3))):
        x = image if axis == 3 else np.moveaxis(image, -1, 1)
        with gg.Graph():
            i = gg.placeholder(("N", *x.shape[1:]), name="i")
            last, h = network(i, partial(convolution, layout), axis)
            head = np.random.default_rng(9).normal(size=(h.shape[axis], 2))
            y = gg.mean(h, places) @ head
            model = gg.compile(i, y)
            slope = gg.gradients(gg.sum(y[:, 1]), last)
            weighted = gg.sum(last * gg.mean(slope, places, keepdims=True), axis, keepdims=True)
            wanted = np.moveaxis(gg.compile(i, weighted)(x), axis, 1)
        found = gg.attribute(model, x, "grad_cam", target=1, relu=False)
        assert list(found.values) == [last.node.name]
        np.testing.assert_allclose(found.value, wanted, atol=1e-12)
        maps.append(found.value)
    assert maps[0].shape == (2, 1, 6, 5)
    assert np.ptp(maps[0]) > 1e-4
    np.testing.assert_allclose(*maps, atol=1e-10)


def test_grad_cam_of_a_row_and_of_a_volume_knows_its_channels():
    for lengths in ((7,), (3, 4, 5)):
        rank, rng = len(lengths), np.random.default_rng(0)
        image, kernel = rng.normal(size=(1, *lengths, 2)), rng.normal(size=(*[3] * rank, 2, 4))
        maps, head = [], rng.normal(size=(4, 2))
        for layout in ("NHWC", "NCHW"):
            x = image if layout == "NHWC" else np.moveaxis(image, -1, 1)
            places = tuple(range(1, rank + 1)) if layout == "NHWC" else tuple(range(2, rank + 2))
            with gg.Graph():
                i = gg.placeholder(x.shape, name="i")
                h = gg.identity(gg.nn.relu(gg.nn.conv(i, kernel, data_format=layout)), name="h")
                model = gg.compile(i, gg.mean(h, places) @ head)
            maps.append(gg.attribute(model, x, "grad_cam", target=0, layer="h").value)
            assert maps[-1].shape == (1, 1, *lengths)
        np.testing.assert_allclose(*maps, atol=1e-12)


def test_grad_cam_asks_where_it_does_not_know():
    """Two convolutions that meet behind the maps; a tensor that none made."""
    with gg.Graph():
        x = gg.placeholder((1, 6, 6, 2), name="x")
        h = [gg.mean(convolution("NHWC", x, 3, i), (1, 2)) for i in range(2)]
        apart = gg.compile(x, h[0] + h[1])
        tokens = gg.identity(gg.reshape(x, (1, 12, 6)) @ np.ones((6, 4)), name="tokens")
        made = gg.compile(x, gg.mean(tokens, 1))
    image = np.random.default_rng(0).normal(size=(1, 6, 6, 2))
    with pytest.raises(gg.GradientError, match="no single feature map"):
        gg.attribute(apart, image, "grad_cam")
    with pytest.raises(gg.GradientError, match="Pass channel_axis="):
        gg.attribute(made, image, "grad_cam", layer="tokens")
    with pytest.raises(gg.GradientError, match="cannot be 0"):
        gg.attribute(made, image, "grad_cam", layer="tokens", channel_axis=0)
    found = gg.attribute(made, image, "grad_cam", target=0, layer="tokens", channel_axis=-1)
    assert found.value.shape == (1, 1, 12)


def conv_terms(x):
    """(N, H, W, k, O): the terms of a 3 by 3 convolution that keeps lengths, and the borders."""
    n, h, w, c = x.shape
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    inside = np.pad(np.ones_like(x), ((0, 0), (1, 1), (1, 1), (0, 0)))
    rows, there = np.zeros((n, h, w, 9 * c)), np.zeros((n, h, w, 9 * c))
    for i in range(3):
        for j in range(3):
            at = slice((3 * i + j) * c, (3 * i + j + 1) * c)
            rows[..., at] = padded[:, i : i + h, j : j + w]
            there[..., at] = inside[:, i : i + h, j : j + w]
    return rows, there


def scattered(shares, shape):
    """The adjoint of taking windows."""
    n, h, w, c = shape
    found = np.zeros((n, h + 2, w + 2, c))
    for i in range(3):
        for j in range(3):
            at = slice((3 * i + j) * c, (3 * i + j + 1) * c)
            found[:, i : i + h, j : j + w] += shares[..., at]
    return found[:, 1:-1, 1:-1]


def first_layer(how, x, r, options):
    """The relevance of a convolution's image by a rule, in NumPy; r is that of its output."""
    rows, there = conv_terms(x)
    w = KERNEL.reshape(-1, 3)
    bias = 0.1
    if how == "flat":
        shares = there @ np.ones_like(w)
        return scattered(there * ((r / shares) @ np.ones_like(w).T), x.shape)
    if how == "box":
        low, high = options["low"] * there, options["high"] * there
        up, down = np.maximum(w, 0), np.minimum(w, 0)
        z = rows @ w - low @ up - high @ down
        s = r / z
        return scattered(rows * (s @ w.T) - low * (s @ up.T) - high * (s @ down.T), x.shape)
    terms = rows[..., None] * w
    y = terms.sum(-2) + bias
    if how == "plus":
        part = np.maximum(terms, 0)
        weights = part / (part.sum(-2) + bias)[..., None, :]
    elif how == "alpha_beta":
        up, down = np.maximum(terms, 0), np.minimum(terms, 0)
        weights = 2 * up / (up.sum(-2) + bias)[..., None, :] - down / down.sum(-2)[..., None, :]
    else:  # what has the sign of the output counts more
        more = np.where(np.sign(terms) == np.sign(y)[..., None, :], 1.25, 1) * terms
        total = more.sum(-2) + bias * np.where(y > 0, 1.25, 1)
        weights = more / total[..., None, :]
    return scattered((weights * r[..., None, :]).sum(-1), x.shape)


@pytest.mark.parametrize(
    ("composite", "how", "options"),
    [
        ("epsilon_plus", "plus", {}),
        ("epsilon_alpha_beta", "alpha_beta", {}),
        ("epsilon_gamma", "gamma", {}),
        ("epsilon_flat", "flat", {}),
        ("epsilon_gamma_box", "box", {"low": -3.0, "high": 3.0}),
    ],
)
def test_composites_of_lrp(cnn, composite, how, options):
    """Each is its formula, term by term, adds up, and differs from epsilon."""
    images = np.moveaxis(IMAGE, -1, 1)
    small = {"epsilon": 1e-12, "stabiliser": 1e-12}
    found = gg.attribute(cnn, images, "lrp", target=1, composite=composite, **options, **small)
    with gg.Graph():
        h = gg.evaluate(gg.nn.relu(gg.nn.conv(IMAGE, KERNEL) + 0.1))
    parts = h.mean((1, 2)) * HEAD[:, 1]  # of the dense layer
    shares = h / h.sum((1, 2), keepdims=True) * parts[:, None, None]
    wanted = first_layer(how, IMAGE, shares, options)
    np.testing.assert_allclose(np.moveaxis(found.value, 1, -1), wanted, rtol=1e-6, atol=1e-9)
    assert abs(found.balance["rest"]) < 1e-9
    assert found.balance["score"] == pytest.approx(
        sum(v for k, v in found.balance.items() if k != "score")
    )
    plain = gg.attribute(cnn, images, "lrp", target=1, **small)
    assert np.abs(found.value - plain.value).max() > 0.01


def test_deeplift_passes_the_largest_of_a_window():
    """What a window rises to and falls from goes to where it was largest; all adds up."""
    with gg.Graph():
        x = gg.placeholder(("N", 4, 1), name="x")
        model = gg.compile(x, gg.sum(gg.nn.max_pool(x, 2), axis=(1, 2)))
    now = np.array([[[3.0], [1.0], [0.5], [2.0]]])
    before = np.array([[[0.0], [2.0], [1.0], [0.0]]])
    found = gg.attribute(model, now, "deeplift", baseline=before)
    # window 1: 2 at place 1 before, 3 at place 0 now; window 2: 1 at place 2, then 2 at place 3
    np.testing.assert_allclose(found.value[0, :, 0], [1, 0, 0, 1])
    falls = gg.attribute(model, before, "deeplift", baseline=now)
    np.testing.assert_allclose(falls.value[0, :, 0], [-1, 0, 0, -1])
    assert abs(found.balance["rest"]) < 1e-12


def test_deeplift_does_not_pass_loops():
    with gg.Graph():
        x = gg.placeholder((3, 2), name="x")
        last, _ = gg.scan(lambda s, row: (gg.tanh(s + row), None), gg.zeros(2), x)
        model = gg.compile(x, gg.sum(last))
    with pytest.raises(gg.GradientError, match=r"no rule for 1 op .*\n.*Scan"):
        gg.attribute(model, np.ones((3, 2)), "deeplift")


def test_wrong_questions_say_what_would_be_right(mlp):
    with pytest.raises(ValueError, match="Did you mean 'smoothgrad'"):
        gg.attribute(mlp, X, "smothgrad")
    with pytest.raises(TypeError, match="Did you mean 'samples'"):
        gg.attribute(mlp, X, "smoothgrad", sample=3)
    with pytest.raises(ValueError, match="Did you mean 'epsilon_plus'"):
        gg.attribute(mlp, X, "lrp", composite="epsilon_plu")
    with pytest.raises(gg.GradientError, match="a model with inputs and outputs"):
        gg.attribute(gg.constant(1.0), X)
    with pytest.raises(gg.GradientError, match="no Elu"):
        gg.attribute(mlp, X, "guided_backprop", activations=("Elu",))
    with pytest.raises(gg.GradientError, match="takes \\['x'\\]"):
        gg.attribute(mlp, {"y": X})


def test_a_picture_is_a_png_whose_red_is_for_the_score(cnn, tmp_path):
    images = np.moveaxis(IMAGE, -1, 1)
    found = gg.attribute(cnn, images, "gradient", target=0)
    found.write_picture(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    matplotlib = pytest.importorskip("matplotlib.image")
    pixels = matplotlib.imread(tmp_path / "a.png")
    values = found.value[0].sum(0)
    most = np.unravel_index(np.abs(values).argmax(), values.shape)
    side = pixels.shape[0] // 4
    red, _, blue = pixels[most[0] * side, most[1] * side, :3]
    assert (red > blue) == (values[most] > 0)
