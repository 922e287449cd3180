"""Programs of PyTorch, opened: values, gradients and second gradients are those of torch."""

import numpy as np
import pytest

import graphgrad as gg

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning:torch"
)
nn, F = torch.nn, torch.nn.functional
leaves = torch.utils._pytree.tree_leaves
open_torch = gg.interop.open_torch


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


A, B, V, M = numbers(3, 4), numbers(4, 3, seed=1), numbers(5), numbers(4, 4)
IMAGE, ROW, CUBE = numbers(2, 4, 6, 5), numbers(2, 4, 9), numbers(1, 2, 4, 5, 4)
INDEX = torch.tensor([0, 2, 0])


def elements(x):
    y = [torch.exp(-(x**2)), torch.tanh(x), torch.log1p(x**2), torch.atan(x), torch.expm1(x)]
    y += [
        torch.sin(x) * torch.cos(x),
        torch.tan(0.3 * x),
        torch.sinh(x),
        torch.cosh(x),
        x.sigmoid(),
    ]
    y += [torch.asin(0.3 * x), torch.acos(0.3 * x), torch.atanh(0.3 * x), torch.asinh(x)]
    y += [torch.acosh(x.abs() + 1.5), torch.rsqrt(x**2 + 1), torch.sqrt(x**2 + 1), x.reciprocal()]
    y += [
        torch.log(x**2 + 1),
        torch.log2(x**2 + 1),
        torch.log10(x**2 + 1),
        torch.exp2(x),
        x.square(),
    ]
    return [*y, x.abs() ** 1.5, 2.0**x, (x**2 + 1) ** x, x.neg(), x.sign() * x, x.frac()]


def special(x):
    z = x**2 + 0.5
    y = [
        torch.erf(x),
        torch.erfc(x),
        torch.erfinv(0.5 * x.tanh()),
    ]
    y += [torch.special.i0e(x), torch.special.i1e(x), torch.i0(x)]
    y += [torch.xlogy(x, z), torch.special.xlog1py(x, z), torch.special.ndtr(x), torch.sinc(x)]
    y += [torch.special.entr(z), torch.logit(x.sigmoid(), 1e-6)]
    return [*y, torch.special.erfcx(x), torch.special.log_ndtr(x), torch.special.ndtri(x.sigmoid())]


def gammas(x):
    z = x**2 + 0.5
    return [torch.lgamma(z), torch.digamma(z), torch.polygamma(1, z), torch.mvlgamma(z + 2, 2)]


def pairs(x, y):
    y = y.T
    z = [x + 2 * y, torch.add(x, y, alpha=3), torch.sub(x, y, alpha=2), 3 - x, torch.rsub(x, y)]
    z += [x * y, x / (y + 5), torch.atan2(x, y), torch.hypot(x, y), torch.maximum(x, y)]
    z += [torch.minimum(x, y), torch.fmax(x, y), torch.fmin(x, 0.1 * y), torch.fmod(x, 0.7)]
    z += [torch.remainder(x, 0.7), torch.remainder(x, y), torch.logaddexp(x, y), x.copysign(y)]
    z += [torch.logaddexp2(x, y), torch.lerp(x, y, 0.3), torch.addcmul(x, x, y, value=2)]
    z += [torch.addcdiv(x, x, y + 5, value=2), torch.where(x > y, x, y**2), x.masked_fill(x > 0, 2)]
    z += [
        x.detach() // 0.7,
        torch.div(x, 0.3, rounding_mode="trunc"),
        torch.heaviside(x.detach(), y.detach()) * y,
    ]
    return [*z, x * (x > y), torch.where(x > 0, 1.0, 2.0) * y, x.pow(y.sign().abs() + 1)]


def clamped(x):
    y = [x.clamp(-0.5, 0.5), x.clamp(min=0.1), x.clamp(max=0.1), x.clamp(x * 0.5, x.T.mean())]
    y += [
        torch.clamp_min(x, 0.2),
        x.round(),
        torch.round(x, decimals=1),
        x.floor() * x,
        x.ceil() * x,
    ]
    return [z * x for z in (*y, x.trunc(), x.nan_to_num(), torch.deg2rad(x))]


def activations(x):
    y = [F.relu(x), F.relu6(3 * x), F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.mish(x)]
    y += [F.elu(x), F.elu(x, 0.5), F.selu(x), F.celu(x, 0.5), F.leaky_relu(x, 0.2), F.softplus(x)]
    y += [F.softplus(x, 2, 1), F.hardtanh(x, -0.5, 0.7), F.hardswish(3 * x)]
    y += [
        F.softshrink(x),
        F.hardshrink(x),
        F.tanhshrink(x),
        F.threshold(x, 0.1, 0.3),
        F.softsign(x),
    ]
    y += [F.logsigmoid(x), F.glu(x), F.softmax(x, 0), F.log_softmax(x, -1), F.softmin(x, 1)]
    return [*y, F.prelu(x, torch.tensor([0.1, 0.2, 0.3, 0.4])), F.normalize(x), F.rrelu(x)]


def reduced(x):
    y = [x.sum(), x.sum(0), x.mean(1, keepdim=True), x.prod(), x.prod(0), x.amax(0), x.amin((0, 1))]
    y += [x.max(), x.min(), x.max(0)[0], x.min(1)[0], x.var(), x.var(0), x.std(1), x.var(1, False)]
    y += [torch.var_mean(x, 0)[0], torch.std_mean(x, 1)[1], x.logsumexp(0), x.norm(), x.norm(1, 0)]
    y += [torch.linalg.vector_norm(x, 3, 1), torch.cumsum(x, 0), torch.cumprod(x, 1), x.nansum()]
    y += [torch.logcumsumexp(x, 0), torch.cummax(x, 1)[0], torch.cummin(x, 0)[0], x.median()]
    y += [x.median(1)[0], x.sort(1)[0] * x, x.sort(0, descending=True)[0], x.topk(2)[0], x.msort()]
    y += [x.kthvalue(2, 1)[0], x[x.argsort(0), torch.arange(4)], x.diff(), x.quantile(0.3, 1)]
    return [*y, torch.trapezoid(x), x.dist(x.flip(0)), torch.renorm(x, 2, 0, 0.5), torch.aminmax(x)]


def shaped(x):
    y = [x.T.reshape(2, 6), x[None, :, None].expand(2, 3, 5, 4), x.repeat(2, 1, 3), x.flip(0, 1)]
    y += [torch.cat([x, x**2], 1), torch.stack([x, x**2], 1).permute(2, 0, 1), x.roll(1, 0)]
    y += [
        *x.split(3, 1),
        *x.chunk(2, 0),
        *x.unbind(1),
        x.tril(),
        x.triu(1),
        x.diagonal(1),
        x.diag(),
    ]
    y += [F.pad(x, (1, -1, 0, 2), value=0.5), F.pad(x[None], (1, 2), "reflect"), x.rot90()]
    y += [F.pad(x[None], (1, 2), "replicate"), F.pad(x[None], (1, 2), "circular"), x.tile(2)]
    y += [x[1:, ::2], x[-1], x[..., 1], x.narrow(1, 1, 2), x.unfold(1, 2, 1), x.movedim(0, 1)]
    y += [x.as_strided((2, 3), (1, 2), 1), x.T.as_strided((3,), (4,), 1), x.repeat_interleave(2, 1)]
    y += [
        x.flatten(),
        x.unflatten(1, (2, 2)),
        x.squeeze(),
        x[:1].squeeze(0),
        x.diag_embed(),
        x.trace(),
    ]
    y += [torch.block_diag(x, x), torch.tensordot(x, x, ([0], [0])), torch.kron(x[:1], x[:2]), x.mT]
    return [
        *y,
        torch.meshgrid(x[0], x[:, 0], indexing="ij")[0],
        torch.hstack([x, x]),
        x.mean((0, 1)),
    ]


def in_place(x):
    y = x.clone()
    y[0] = 2 * x[1]
    y[:, 1:3] += x[:, :2]
    y.mul_(x).sin_()
    z = torch.zeros(3, 4)
    z[1] = x[0]
    z.view(-1)[::5] = 3.0
    return [y, z, x.detach() * x, y.transpose(0, 1).contiguous()]


def indexed(x):
    y = [x[INDEX], x[[0, 2], [1, 3]] ** 2, x[:, [[0, 1], [3, 3]]], x.index_select(1, INDEX)]
    y += [x.gather(1, torch.tensor([[0], [3], [1]])), x.take(torch.tensor([[0, 5], [11, 2]]))]
    y += [x.gather(0, torch.tensor([[0, 2, 1]])), x.index_add(0, INDEX, x**2, alpha=2)]
    y += [x.index_copy(1, torch.tensor([0, 2]), x[:, 2:]), x.index_fill(0, torch.tensor([1]), 2.0)]
    y += [
        x.scatter(1, torch.tensor([[0], [3], [1]]), x[:, :1] ** 2),
        x.scatter(0, INDEX[None], 3.0),
    ]
    y += [x.scatter_add(0, INDEX[:, None].expand(3, 4), x**2), x.take_along_dim(x.argsort(1), 1)]
    how = {"index": torch.tensor([[0, 2], [3, 3], [1, 1]]), "src": x[:, :2] ** 2 + 1}
    for kind in ("sum", "prod", "mean", "amax", "amin"):
        y += [x.scatter_reduce(1, reduce=kind, include_self=own, **how) for own in (True, False)]
    y += [x.index_put((INDEX, INDEX), x[:, 0], accumulate=True), x.masked_scatter(x > 0, x.flip(0))]
    y += [
        x.index_put((torch.tensor([1]),), x[0]),
        x.select_scatter(x[0] ** 2, 0, 1),
        x.put(torch.tensor([5, 1]), x[0, :2]),
    ]
    y += [x.slice_scatter(x[:, :2] ** 2, 1, 1, 3), x.diagonal_scatter(x[:, 0] ** 2), x[x.argmax(0)]]
    return [
        *y,
        F.embedding(INDEX, x, 2),
        F.one_hot(INDEX, 4) * x,
        x.index_reduce(0, INDEX, x, "amax"),
    ]


def products(x, y):
    z = [x @ y, x.mm(y), torch.einsum("ij,jk->ki", x, y), x[None].bmm(y[None]), x.mv(y[:, 0])]
    z += [
        torch.addmm(x[:, :3], x, y, beta=2, alpha=3),
        F.linear(x, y.T, x[:3, 0]),
        x[0].dot(y[:, 1]),
    ]
    z += [torch.outer(x[0], y[0]), torch.baddbmm(x[None, :, :3], x[None], y[None]), x[0] @ y]
    z += [F.cosine_similarity(x, y.T), torch.chain_matmul(x, y, x), x.inner(x)]
    z += [F.bilinear(x, x, torch.stack([y @ x, x.T @ y.T]))]
    return [
        *z,
        torch.addr(x[:, :3], x[:, 0], y[0]),
        torch.linalg.multi_dot([x, y]),
        F.pairwise_distance(x, x.flip(0)),
    ]


def attended(x):
    q = x.reshape(2, 2, 12, 5)
    mask = torch.ones(12, 12).tril().bool()
    return [torch.softmax(q @ q.mT + torch.where(mask, 0.0, -torch.inf), -1) @ q]


def convolved(x):
    w = x[:, :, :3, :3].transpose(0, 1).reshape(4, 2, 3, 3)
    y = [F.conv2d(x, w.repeat(1, 2, 1, 1)), F.conv2d(x, w, w[:, 0, 0, 0], (2, 1), 1, 1, 2)]
    y += [
        F.conv2d(x, w.repeat(1, 2, 1, 1), padding="same", dilation=2),
        F.conv1d(x[:, :, 0], w[:, :, 0].repeat(1, 2, 1)),
    ]
    y += [
        F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1),
        F.conv3d(x[:, None], w[:, :1, None]),
    ]
    return [
        *y,
        F.conv_transpose2d(x, w, groups=2),
        F.conv_transpose1d(x[:, :, 0], w[:, :, 0], dilation=2),
    ]


def pooled(x):
    y = [F.max_pool2d(x, 2), F.max_pool2d(x, 3, 1, 1, 2), F.max_pool2d(x, 2, ceil_mode=True)]
    y += [
        F.avg_pool2d(x, 2),
        F.avg_pool2d(x, 3, 2, 1, True, False),
        F.avg_pool2d(x, 2, divisor_override=3),
    ]
    y += [
        F.max_pool1d(x[:, :, 0], 2),
        F.avg_pool1d(x[:, :, 0], 2),
        F.max_pool3d(x, 2),
        F.avg_pool3d(x, 2),
    ]
    y += [
        F.adaptive_avg_pool2d(x, (3, 2)),
        F.adaptive_max_pool2d(x, (4, 3)),
        F.adaptive_avg_pool1d(x[0], 2),
    ]
    y += [
        F.max_pool2d(x, 2, return_indices=True),
        F.lp_pool2d(x.abs() + 0.1, 2, 2),
        F.adaptive_avg_pool2d(x, 1),
    ]
    return [
        *y,
        F.adaptive_avg_pool3d(x, 2),
        F.max_unpool2d(*F.max_pool2d(x[..., :4], 2, return_indices=True), 2),
    ]


def resized(x):
    y = [
        F.interpolate(x, scale_factor=2),
        F.interpolate(x, (3, 9)),
        F.interpolate(x, (9, 4), mode="nearest-exact"),
    ]
    y += [
        F.interpolate(x, scale_factor=1.7, mode="bilinear"),
        F.interpolate(x, (4, 9), mode="bilinear"),
    ]
    y += [
        F.interpolate(x, (9, 9), mode="bilinear", align_corners=True),
        F.interpolate(x, (4, 9), mode="bicubic"),
    ]
    y += [
        F.interpolate(x[:, :, 0], 7, mode="linear"),
        F.interpolate(x[:, None], (4, 5, 6), mode="trilinear"),
    ]
    y += [
        F.interpolate(x, (3, 3), mode="area"),
        F.pixel_shuffle(x, 2),
        F.pixel_unshuffle(x[:, :, :, :4], 2),
    ]
    y += [F.unfold(x, 3, 1, 1, 2), F.fold(F.unfold(x, 2), (6, 5), 2), F.channel_shuffle(x, 2)]
    grid = torch.tanh(x[:, :2].permute(0, 2, 3, 1))
    y += [
        F.grid_sample(x, grid, align_corners=False),
        F.grid_sample(x, 2 * grid, "bilinear", "border", True),
    ]
    return [
        *y,
        F.grid_sample(x, F.affine_grid(x[:, 0, :2, :3], (2, 4, 3, 3), False), align_corners=False),
    ]


def normalised(x):
    y = [
        F.layer_norm(x, (5,)),
        F.layer_norm(x, (6, 5), x[0, 0], x[0, 1]),
        F.group_norm(x, 2, x[0, :, 0, 0]),
    ]
    y += [F.instance_norm(x), F.rms_norm(x, (5,), x[0, 0, 0]), F.local_response_norm(x, 2)]
    mean, var = torch.zeros(4), torch.ones(4)
    return [
        *y,
        F.batch_norm(x, mean, var),
        F.batch_norm(x, None, None, x[0, :, 0, 0], training=True),
    ]


def losses(x):
    t = torch.sigmoid(x.flip(0))
    y = [F.mse_loss(x, t), F.l1_loss(x, t), F.smooth_l1_loss(x, t), F.huber_loss(x, t, delta=0.4)]
    y += [
        F.cross_entropy(x, INDEX),
        F.cross_entropy(x, t, label_smoothing=0.1),
        F.nll_loss(x, INDEX),
    ]
    y += [F.binary_cross_entropy(x.sigmoid(), t.detach()), F.binary_cross_entropy_with_logits(x, t)]
    y += [
        F.kl_div(x, t, reduction="batchmean"),
        F.poisson_nll_loss(x, t),
    ]
    y += [F.hinge_embedding_loss(x, x.detach().sign()), F.soft_margin_loss(x, x.detach().sign())]
    y += [F.margin_ranking_loss(x, t, x.detach().sign()), F.triplet_margin_loss(x, t, x.flip(1))]
    return [*y, F.multilabel_soft_margin_loss(x, t), F.cosine_embedding_loss(x, t, torch.ones(3))]


def solved(x):
    spd = x @ x.T + 4 * torch.eye(4)
    y = [
        torch.linalg.inv(spd),
        torch.linalg.solve(spd, x),
        torch.linalg.det(x),
        torch.linalg.slogdet(x)[1],
    ]
    y += [
        torch.linalg.cholesky(spd),
        torch.linalg.eigvalsh(spd),
        torch.linalg.svdvals(x),
        torch.logdet(spd),
    ]
    y += [
        torch.linalg.qr(x)[1] ** 2,
        torch.linalg.eigh(spd)[1] ** 2,
        torch.linalg.matrix_norm(x),
        x.pinverse(),
    ]
    y += [
        torch.linalg.solve_triangular(spd.tril(), x, upper=False),
        torch.linalg.matrix_exp(0.3 * x),
    ]
    y += [
        torch.linalg.solve(spd, x[0]),
        torch.linalg.matrix_power(x, 3),
        torch.cholesky_solve(x, spd.tril()),
    ]
    return [
        *y,
        torch.linalg.cross(x[:, :3], x[:, 1:]),
        torch.linalg.vector_norm(x),
        torch.linalg.norm(x, 2),
    ]


def transformed(x):
    y = [torch.fft.fft(x).abs() ** 2, torch.fft.rfft(x).real, torch.fft.irfft(torch.fft.rfft(x), 4)]
    y += [torch.fft.fft2(x, norm="ortho").imag, torch.fft.ifft(x + 0j, norm="forward").real]
    return [
        *y,
        (torch.exp(1j * x) * (x + 2j)).real,
        torch.angle(x + 3j),
        torch.view_as_real(x + 1j * x),
    ]


def once(x):
    """Of which torch has no second gradient."""
    q = x.reshape(2, 2, 12, 5)
    mask = torch.ones(12, 12).tril().bool()
    y = [F.scaled_dot_product_attention(q, q, q), torch.cdist(x[0, 0], x[0, 1])]
    y += [F.scaled_dot_product_attention(q, q, q, mask), F.pdist(x[0, 0])]
    return [*y, F.scaled_dot_product_attention(q, q * 2, q, is_causal=True, scale=0.3)]


def of_blocks(x):
    with torch.no_grad():
        y = torch.tanh(x)
        with torch.enable_grad():
            z = x * y
    return [
        x * y + z,
        torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False),
        x.detach() * x,
    ]


FUNCTIONS = {
    "elements": (elements, A),
    "special": (special, A),
    "pairs": (pairs, A, B),
    "clamped": (clamped, A),
    "activations": (activations, A),
    "reduced": (reduced, A),
    "shaped": (shaped, A),
    "in place": (in_place, A),
    "indexed": (indexed, A),
    "products": (products, A, B),
    "attended": (attended, IMAGE),
    "convolved": (convolved, IMAGE),
    "pooled": (pooled, IMAGE),
    "resized": (resized, IMAGE),
    "normalised": (normalised, IMAGE),
    "losses": (losses, A[:, :]),
    "solved": (solved, M),
    "transformed": (transformed, A),
    "blocks": (of_blocks, A),
    "gammas": (gammas, A),
    "once": (once, IMAGE),
}
ONE_GRADIENT = ("once",)
ROUGH = ("gammas",)
"""The derivatives of digamma in torch are right to 1e-8."""


def in_torch(fn, arrays, orders):
    """Values, and weighted gradients of the first two orders, by torch; that of complex numbers
    as a graph means it."""
    xs = [torch.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    ys = [y for y in leaves(fn(*xs)) if isinstance(y, torch.Tensor)]
    found, wanted = [ys], [x for x in xs if x.requires_grad]
    if orders:
        loss = sum(torch.sin(y).sum() for y in ys if y.is_floating_point())
        found.append(gradients_in_torch(loss, wanted, orders > 1))
    if orders > 1:
        squares = sum((dx**2).sum() for dx in found[1])
        found.append(gradients_in_torch(squares, wanted, False))
    return [[t.detach().resolve_conj().numpy() for t in row] for row in found]


def gradients_in_torch(y, xs, again):
    if not y.requires_grad:
        return [torch.zeros_like(x) for x in xs]
    dxs = torch.autograd.grad(y, xs, create_graph=again, allow_unused=True, retain_graph=True)
    return [torch.zeros_like(x) if dx is None else dx for x, dx in zip(xs, dxs, strict=True)]


def opened(fn, arrays, orders, **kwargs):
    """The same, of the function opened."""
    with gg.Graph():
        xs = [gg.placeholder(a.shape, a.dtype) for a in arrays]
        ys = [y for y in leaves(open_torch(fn, *xs, **kwargs)) if isinstance(y, gg.Tensor)]
        found, wanted = [ys], [x for x in xs if x.dtype.kind == "f"]
        if orders:
            loss = sum(gg.sum(gg.sin(y)) for y in ys if y.dtype.kind == "f")
            found.append(gg.gradients(loss, wanted, unconnected="zero"))
        if orders > 1:
            squares = sum(gg.sum(dx * dx) for dx in found[1])
            found.append(gg.gradients(squares, wanted, unconnected="zero"))
        with np.errstate(all="ignore"):
            return gg.compile(xs, found, backend="numpy")(*arrays)


def compare(ours, theirs, tolerance=1e-10):
    for order, (got, want) in enumerate(zip(ours, theirs, strict=True)):
        assert len(got) == len(want)
        for i, (a, b) in enumerate(zip(got, want, strict=True)):
            assert (a.shape, a.dtype) == (b.shape, b.dtype), (order, i)
            size = max(1.0, float(np.abs(b).max(initial=0))) if b.dtype.kind in "fc" else 1.0
            np.testing.assert_allclose(
                a, b, tolerance, tolerance * size, err_msg=f"order {order}, {i}"
            )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_are_those_of_torch(name):
    fn, *arrays = FUNCTIONS[name]
    orders = 1 if name in ONE_GRADIENT else 2
    with default_dtype(torch.float64):
        theirs = in_torch(fn, arrays, orders)
        compare(opened(fn, arrays, orders), theirs, 1e-6 if name in ROUGH else 1e-10)


class default_dtype:
    def __init__(self, dtype):
        self.dtype = dtype

    def __enter__(self):
        self.before = torch.get_default_dtype()
        torch.set_default_dtype(self.dtype)

    def __exit__(self, *_):
        torch.set_default_dtype(self.before)
