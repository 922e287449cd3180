"""Programs of PyTorch, opened: values, gradients and second gradients are those of torch."""

import importlib
import threading

import numpy as np
import pytest

import graphgrad as gg

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"
)
map_of_torch = importlib.import_module("torch._higher_order_ops").map
TRANSFORMS = importlib.import_module("torch._functorch.eager_transforms")
scan_of_torch = importlib.import_module("torch._higher_order_ops.scan").scan
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


def backwards(x):
    """Operators of ATen that are gradients themselves."""
    aten, w = torch.ops.aten, x[:, :, :3, :3].transpose(0, 1).reshape(4, 2, 3, 3).repeat(1, 2, 1, 1)
    dy, pool = F.conv2d(x, w), ((2, 2), (2, 2), (0, 0))
    y = [torch.nn.grad.conv2d_input(x.shape, w, dy), torch.nn.grad.conv2d_weight(x, w.shape, dy)]
    y += [aten.avg_pool2d_backward(F.avg_pool2d(x, 2), x, *pool, False, True, None)]
    top, places = F.max_pool2d(x, 2, return_indices=True)
    y += [aten.max_pool2d_with_indices_backward(top, x, *pool, (1, 1), False, places)]
    y += [aten._adaptive_avg_pool2d_backward(F.adaptive_avg_pool2d(x, (2, 3)), x)]
    flat, weight = x.detach().clone(), torch.arange(1.0, 6.0)
    _, mean, rest = torch.native_layer_norm(flat, (5,), weight, weight, 1e-5)
    masks = [True, True, True]
    y += aten.native_layer_norm_backward(x.detach(), flat, (5,), mean, rest, weight, weight, masks)
    _, mean, rest = torch.native_group_norm(flat, weight[:4], None, 2, 4, 30, 2, 1e-5)
    y += aten.native_group_norm_backward(
        x.detach(), flat, mean, rest, weight[:4], 2, 4, 30, 2, masks
    )
    return [*y, aten.embedding_dense_backward(x[0, 0, :3].detach(), INDEX, 4, 1, False)]


def once(x):
    """Of which torch has no second gradient."""
    q = x.reshape(2, 2, 12, 5)
    mask = torch.ones(12, 12).tril().bool()
    y = [F.scaled_dot_product_attention(q, q, q), torch.cdist(x[0, 0], x[0, 1])]
    y += [F.scaled_dot_product_attention(q, q, q, mask), F.pdist(x[0, 0])]
    return [*y, F.scaled_dot_product_attention(q, q * 2, q, is_causal=True, scale=0.3)]


@torch.inference_mode()
def inferred(x):
    return torch.sin(x)


def of_inference(x):
    """What torch refuses to differentiate, for it saves no such tensor: without a gradient."""
    with torch.inference_mode():
        y = torch.tanh(x)
    return x + y * 1.0 + inferred(x)


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
    "backwards": (backwards, IMAGE),
}
ONE_GRADIENT = ("once", "backwards")
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


def test_inference_mode_has_no_gradient():
    (values, (slope,)) = opened(of_inference, [A], 1)
    np.testing.assert_allclose(values[0], A + np.tanh(A) + np.sin(A), 1e-12)
    np.testing.assert_allclose(slope, np.cos(values[0]), 1e-12)


# --- dtypes and edges --------------------------------------------------------------------------

EDGES = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0])
INTEGERS = np.array([0, 1, -1, 2, -2, 7, -7, 100, -128])


def at_edges(x, y):
    z = [x + y, x * y, x / y, torch.maximum(x, y), torch.minimum(x, y), torch.fmax(x, y), x.round()]
    z += [
        x == y,
        x != y,
        x < y,
        x <= y,
        x > y,
        x >= y,
        torch.remainder(x, y),
        torch.fmod(x, y),
        x**y,
    ]
    z += [
        x.clamp(-1, 1),
        x.clamp(min=0.5),
        x.clamp(max=0.5),
        x.relu(),
        x.sign(),
        x.sgn(),
        x.isnan(),
    ]
    z += [
        x.max(),
        x.argmax(),
        x.sort()[0],
        x.sort(descending=True, stable=True)[1],
        x.cummax(0),
        x.cummin(0),
    ]
    z += [
        x.isinf(),
        x.isfinite(),
        torch.atan2(x, y),
        x.nan_to_num(0.5),
        x.median(),
        x.sum(),
        x.nansum(),
    ]
    z += [
        torch.where(x > 0, x, y),
        x.topk(3)[0],
        x.signbit(),
        torch.copysign(x, y),
        x.bool(),
        x.trunc(),
    ]
    z += [
        torch.floor_divide(x, y),
        x.frac(),
        F.softplus(x),
        F.hardtanh(x),
        F.hardsigmoid(x),
        x.sigmoid(),
    ]
    return [*z, torch.div(x, y, rounding_mode="trunc"), x.logical_not(), torch.hypot(x, y), x.exp()]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_edges_are_those_of_torch(dtype):
    n = len(EDGES)
    x, y = (a.reshape(-1).astype(dtype) for a in np.meshgrid(EDGES, EDGES))
    (ours,), (theirs,) = (f(at_edges, [x, y], 0) for f in (opened, in_torch))
    assert len(x) == n * n
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, 1e-5, err_msg=str(i))


def of_integers(x, y):
    z = [
        x + y,
        x - y,
        x * 2,
        x * 0.5,
        x / y,
        x // y,
        x % y,
        torch.fmod(x, y),
        -x,
        x.abs(),
        x.sign(),
    ]
    z += [torch.div(x, y, rounding_mode="trunc"), x & y, x | y, x ^ y, ~x, x << 1, x >> 1, x.sum()]
    z += [
        x == y,
        x < 2.5,
        x.float().mean(),
        x.prod(),
        x.cumsum(0),
        x.amax(),
        x.argmin(),
        x.sort()[0],
    ]
    z += [x.clamp(2, 5), x.max(y), torch.where(x > y, x, 2), x.double() + 1, x.sqrt(), x.sin() + 1]
    z += [
        x + torch.tensor(2.5),
        torch.tensor(3) * x,
        x.to(torch.int16),
        x.bool() & (y > 1),
        x.any(),
    ]
    z += [
        (x + 0.0).to(torch.int64),
        torch.arange(3, dtype=x.dtype),
        torch.full((2,), 3),
        x.square(),
    ]
    return [
        *z,
        torch.ones(2, dtype=torch.float16) * 2,
        x.new_zeros(3),
        torch.zeros_like(x),
        x.flip(0),
    ]


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_integers_are_those_of_torch(dtype):
    x = INTEGERS.astype(dtype)
    y = np.where(x[::-1] == 0, 3, x[::-1]).astype(dtype)
    (ours,), (theirs,) = (f(of_integers, [x, y], 0) for f in (opened, in_torch))
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert a.dtype == b.dtype, i
        np.testing.assert_allclose(a, b, 1e-6, err_msg=str(i))


def at_ties(x):
    y = [
        x.max(),
        x.amax(0),
        x.max(0)[0],
        x.min(),
        torch.maximum(x, x.flip(0)),
        x.clamp(0, 1),
        x.abs(),
    ]
    y += [x.relu(), F.max_pool1d(x[None, None], 2, 1), x.cummax(0)[0], x.median(), x.sort()[0] * x]
    return [
        *y,
        x.norm(),
        x.prod(),
        x**0,
        F.hardtanh(x),
        F.leaky_relu(x),
        x.sign() * x,
    ]


def test_gradients_at_ties_are_those_of_torch():
    for array in (np.array([0.0, 1.0, 1.0, -1.0, 1.0]), np.zeros(5)):
        compare(opened(at_ties, [array], 1), in_torch(at_ties, [array], 1))


def test_nothing_along_an_axis():
    def fn(x):
        y = [x.sum(0), x.cumsum(1), torch.cat([x, x]), x.reshape(3, 0), x @ x.T, x.prod(), x.any()]
        return [*y, F.linear(x, torch.ones(2, 3)), x.flatten(), x.T.sum(0, keepdim=True), x.relu()]

    arrays = [np.zeros((0, 3))]
    with default_dtype(torch.float64):
        compare(opened(fn, arrays, 1), in_torch(fn, arrays, 1))


# --- every operator ----------------------------------------------------------------------------


def operators():
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads() if hasattr(packet, "overloads") else ():
            yield getattr(packet, overload)


def test_every_core_operator_has_a_form_or_a_reason():
    table = pytest.importorskip("graphgrad.interop.torch_operators.table")
    tracing = pytest.importorskip("graphgrad.interop.torch_operators.tracing")
    core = {op for op in operators() if torch.Tag.core in op.tags}
    assert len(core) > 150
    assert {table.name_of(op) for op in core if not tracing.is_known(op)} <= table.LEFT_OUT.keys()
    assert not table.TABLE.keys() & table.LEFT_OUT.keys()
    gone = {"cholesky"}  # since PyTorch 2.14
    assert all(hasattr(torch.ops.aten, name.split(".")[0]) for name in table.TABLE.keys() - gone)


# --- modules -----------------------------------------------------------------------------------


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.Dropout(), nn.Linear(6, 3))

    def forward(self, x):
        return self.layers(x).log_softmax(-1)


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(4, 6, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(6)
        self.down = nn.Conv2d(6, 6, 3, stride=2, groups=3)
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv1(x)), inplace=True), 2, 1)
        return self.head(F.adaptive_avg_pool2d(self.down(x), 1).flatten(1))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.mid = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)
        self.up, self.out = nn.ConvTranspose2d(8, 4, 2, 2), nn.Conv2d(8, 1, 1)

    def forward(self, x):
        high = F.silu(self.down(x[..., :4]))
        low = F.group_norm(F.silu(self.mid(F.avg_pool2d(high, 2))), 2)
        return self.out(torch.cat([high, self.up(low)], 1)) + F.interpolate(
            low[:, :1], scale_factor=2
        )


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.cell = kind(4, 5, num_layers=2, batch_first=True, bidirectional=True)

    def forward(self, x):
        return self.cell(x.permute(0, 2, 1))[0]


class Graphs(nn.Module):
    def __init__(self):
        super().__init__()
        self.message, self.update = nn.Linear(8, 4), nn.GRUCell(4, 4)
        self.register_buffer("edges", torch.tensor([[0, 1, 2, 0], [1, 2, 0, 2]]))

    def forward(self, x):
        source, target = self.edges
        sent = torch.relu(self.message(torch.cat([x[source], x[target]], 1)))
        gathered = torch.zeros_like(x).index_add(0, target, sent)
        counts = torch.zeros(3).index_add_(0, target, torch.ones(4)).clamp(min=1)
        return self.update(gathered / counts[:, None], x)


class Vision(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(4, 8, 2, 2)
        self.token = nn.Parameter(torch.randn(1, 1, 8))
        self.block = nn.TransformerEncoderLayer(
            8, 2, 16, 0.0, F.gelu, batch_first=True, norm_first=True
        )

    def forward(self, x):
        rows = self.patches(x).flatten(2).mT
        rows = torch.cat([self.token.expand(x.shape[0], -1, -1), rows], 1)
        return self.block(rows)[:, 0]


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(4, 4), nn.Linear(4, 4)
        self.outer.weight = self.inner.weight

    def forward(self, x):
        return self.outer(torch.tanh(self.inner(x)))


MODULES = {
    "perceptron": (Perceptron, A),
    "convolutional": (Convolutional, IMAGE),
    "u-net": (UNet, IMAGE),
    "lstm": (lambda: Recurrent(nn.LSTM), ROW),
    "gru": (lambda: Recurrent(nn.GRU), ROW),
    "rnn": (lambda: Recurrent(nn.RNN), ROW),
    "graphs": (Graphs, A),
    "vision": (Vision, IMAGE[..., :4]),
    "tied": (Tied, A),
    "encoder": (
        lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True),
        ROW.transpose(0, 2, 1),
    ),
    "decoder": (lambda: Decoder(), A[None]),
}


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(4, 2, 8, batch_first=True)

    def forward(self, x):
        return self.layer(
            x, x * 2, nn.Transformer.generate_square_subsequent_mask(3), tgt_is_causal=True
        )


@pytest.mark.parametrize("name", MODULES)
def test_modules_and_the_gradients_of_their_parameters(name):
    make, array = MODULES[name]
    torch.manual_seed(0)
    with default_dtype(torch.float64):
        module = make().eval()
        x = torch.tensor(array, requires_grad=True)
        y = module(x)
        named = dict(module.named_parameters())
        theirs = torch.autograd.grad(torch.sin(y).sum(), [x, *named.values()])
        with gg.Graph() as graph:
            a = gg.placeholder(array.shape)
            b = open_torch(module, a)
            own = [graph.tensor(f"{at}:0") for at in named]
            made = [b, gg.gradients(gg.sum(gg.sin(b)), [a, *own])]
        assert [v.node.name for v in graph.variables if v.node.op.trainable] == list(named)
        ours = gg.compile(a, made, backend="numpy")(array)
    compare([[ours[0]], ours[1]], [[y.detach().numpy()], [t.numpy() for t in theirs]])


# --- training and writes -----------------------------------------------------------------------


def test_what_a_module_writes_comes_back():
    torch.manual_seed(0)
    module = Convolutional().double().train()
    x = torch.tensor(IMAGE, requires_grad=True)
    with gg.Graph() as graph:
        a = gg.placeholder(IMAGE.shape)
        with pytest.raises(gg.GraphError, match=r"(?s)writes norm.*eval\(\).*updates=True"):
            open_torch(module, a)
        with pytest.raises(gg.GraphError, match="none is a variable"):
            open_torch(module, a, updates=True, parameters="constants")
        assert len(graph.nodes) == 1
        b, updates = open_torch(module, a, updates=True)
        step = gg.compile(a, [b, gg.gradients(gg.sum(gg.sin(b)), a)], updates=updates)
    for _ in range(2):
        ours = step(IMAGE)
        y = module(x)
        theirs = [y, torch.autograd.grad(torch.sin(y).sum(), x)[0]]
        compare([ours], [[t.detach().numpy() for t in theirs]])
    for name, value in module.named_buffers():
        np.testing.assert_allclose(graph.state[name], value.numpy(), 1e-12)
    assert graph.state["norm.num_batches_tracked"] == 2


def test_dropout_draws_the_numbers_of_the_graph():
    module = nn.Sequential(nn.Dropout2d(0.5), nn.AlphaDropout(0.1)).train()
    one = nn.Dropout(0.25).train()
    before = torch.random.get_rng_state()
    with gg.Graph(seed=1):
        x = gg.constant(np.ones((2, 50, 20)))
        y = open_torch(one, x)
        dx = gg.gradients(gg.sum(y), x)
        more = open_torch(
            lambda x: [torch.rand_like(x), torch.randn(3), torch.randint(2, 5, (9,)), module(x)], x
        )
        values, slopes, rest = gg.compile([], [y, dx, more])()
    assert torch.equal(torch.random.get_rng_state(), before)
    np.testing.assert_array_equal(values, slopes)
    assert set(np.unique(values)) == {0.0, 1 / 0.75}
    assert 0.6 < (values > 0).mean() < 0.9
    assert (rest[0] >= 0).all()
    assert (rest[0] < 1).all()
    assert set(rest[2]) <= {2, 3, 4}


# --- rules -------------------------------------------------------------------------------------


class Quantised(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, steps):
        ctx.save_for_backward(x)
        ctx.steps = steps
        return torch.round(x * steps) / steps

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy * (x.abs() < 1) * x * ctx.steps, None


class Spike(torch.autograd.Function):
    @staticmethod
    def forward(x, slope=3.0):
        return (x > 0).to(x.dtype)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output)
        ctx.slope = inputs[1]

    @staticmethod
    def backward(ctx, dy):
        x, y = ctx.saved_tensors
        return dy * (1 + y) / (1 + (ctx.slope * x).abs()) ** 2, None


class Several(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        z = torch.exp(x)
        ctx.save_for_backward(x, y, z, z * 2)
        return z, (z * y).sum(0), x > 0

    @staticmethod
    def backward(ctx, dz, dsum, _):
        x, _y, z, twice = ctx.saved_tensors
        dx = dz * z * 3 if dz is not None else 0 * x
        if dsum is not None:
            dx = dx + dsum * twice
        return dx, dsum * x if dsum is not None and ctx.needs_input_grad[1] else None


class Nested(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return Quantised.apply(x, 4.0)

    @staticmethod
    def backward(ctx, dy):
        return Quantised.apply(dy, 2.0) * 3


class Marking(torch.autograd.Function):
    """Of its outputs one has no gradient, and is read by backward."""

    @staticmethod
    def forward(ctx, x):
        y, z = torch.sin(x), torch.exp(x)
        ctx.save_for_backward(y, z)
        ctx.mark_non_differentiable(z)
        return y, z

    @staticmethod
    def backward(ctx, dy, dz):
        y, z = ctx.saved_tensors
        return dy * y * z + dz


class MarkingAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.exp(x)
        ctx.mark_non_differentiable(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        return dy


class Keeping(torch.autograd.Function):
    """Saves what is neither an input nor an output, as tensors and as an attribute."""

    @staticmethod
    def forward(ctx, x):
        z = torch.exp(x)
        ctx.save_for_backward(z, x.t(), x.argmax(1))
        ctx.more = {"rows": [z * 2]}
        return z + 1

    @staticmethod
    def backward(ctx, dy):
        z, turned, places = ctx.saved_tensors
        return dy * z * turned.t() * ctx.more["rows"][0] + places[:, None]


class Squared(torch.autograd.Function):
    """Of complex numbers; its rule is not that of any function, so that its orders differ."""

    @staticmethod
    def forward(ctx, z):
        y = z * z * 1j
        ctx.save_for_backward(z, y, y * z)
        return y

    @staticmethod
    def backward(ctx, dy):
        z, y, more = ctx.saved_tensors
        return 3 * dy * z.conj() + 1j * dy.real + dy.conj() * y * more


class Imagined(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.complex(x, 2 * x)

    @staticmethod
    def backward(ctx, dy):
        return 3 * dy.real + 5 * dy.imag


class Sized(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z.abs() ** 2

    @staticmethod
    def backward(ctx, dy):
        return 7 * dy * ctx.saved_tensors[0]


def differentiated(rule, times=1):
    """What a program is that differentiates a rule itself."""

    def call(x):
        dx = leaves(rule(x))[0]
        for _ in range(times):
            (dx,) = torch.autograd.grad((dx**2).real.sum(), x, create_graph=True)
        return dx * x

    return call


kept = Spike.apply
"""As programs keep it: the function that is replaced while torch exports is in it."""


def recomputed(x):
    (dx,) = torch.autograd.grad((Quantised.apply(x, 4.0) ** 2).sum(), x, create_graph=True)
    return dx * x


RULES = {
    "straight through": lambda x: Quantised.apply(x**2, 4.0) * x,
    "surrogate": lambda x: kept(x) * x + kept(x, 2.0),
    "several": lambda x: Several.apply(x, torch.cos(x))[:2],
    "the first of several": lambda x: Several.apply(x, x)[0],
    "one in another": lambda x: Nested.apply(x * x),
    "an output without a gradient": lambda x: torch.mul(*Marking.apply(x)),
    "outputs without a gradient": lambda x: MarkingAll.apply(x) * x,
    "what is kept besides": lambda x: Keeping.apply(x) * x,
    "complex": lambda x: Sized.apply(Squared.apply(Imagined.apply(x)) * (1 + 2j)) * x,
    "differentiated": differentiated(Keeping.apply),
    "differentiated twice": differentiated(Keeping.apply, 2),
    "differentiated, of two outputs": differentiated(Marking.apply, 2),
    "differentiated, complex": differentiated(lambda x: Squared.apply(torch.complex(x, x * x))),
    "quantised by torch": lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 1, -8, 7) * x,
    "by channels": lambda x: torch.fake_quantize_per_channel_affine(
        x**2, torch.full((4,), 0.2, dtype=torch.float32), torch.arange(4).int(), 1, -8, 7
    ),
    "no gradient": lambda x: x * Quantised.apply(x.detach(), 3.0),
    "checkpointed": lambda x: torch.utils.checkpoint.checkpoint(
        lambda a: Quantised.apply(a, 2.0), torch.sin(x), use_reentrant=False
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_rules_of_torch_count_at_every_order(name):
    with default_dtype(torch.float64):
        compare(opened(RULES[name], [A], 2), in_torch(RULES[name], [A], 2))


class Masking(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        mask = torch.rand_like(x) > 0.5
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, dy):
        return 3 * dy * ctx.saved_tensors[0]


def test_S44_backward_has_the_numbers_that_forward_drew(tmp_path):
    ones = np.ones((3, 4, 50))
    fns = [Masking.apply, lambda x: torch.autograd.grad(Masking.apply(x).sum(), x)[0]]
    with gg.Graph() as graph:
        x = gg.placeholder(ones.shape, name="x")
        y, inside = (open_torch(fn, x) for fn in fns)
        each = gg.vmap(lambda row: open_torch(Masking.apply, row))(x)
        rows = [y, gg.gradients(y, x), each, gg.gradients(each, x), inside]
        f = gg.compile(x, rows)
        gg.save(tmp_path / "f.gg", graph, functions={"f": f})
    for call in (f, gg.load(tmp_path / "f.gg").functions["f"]):
        y, dx, each, dx_each, inside = call(ones)
        np.testing.assert_array_equal(dx, 3 * y)
        np.testing.assert_array_equal(dx_each, 3 * each)
        assert {0.0, 1.0} == set(np.unique(y)) == set(np.unique(each)) == set(np.unique(inside) / 3)


def test_S09_what_a_rule_keeps_is_no_output_of_a_region_around():
    with gg.Graph():
        x = gg.placeholder((3, 4))
        with gg.override_gradient(lambda site, dy: site.default(dy)):
            y = open_torch(Keeping.apply, x)
        dx = gg.compile(x, gg.gradients(gg.sum(gg.sin(y)), x))(A)
    compare([[dx]], in_torch(Keeping.apply, [A], 1)[1:])


def test_a_gradient_inside_of_a_program_is_that_of_the_rule():
    def fn(x):
        return recomputed(x.detach().requires_grad_())

    with default_dtype(torch.float64):
        compare(opened(fn, [A], 0), in_torch(fn, [A], 0))


def test_a_rule_of_torch_can_be_switched_off_and_replaced():
    with gg.Graph() as graph:
        x = gg.placeholder((3, 4))
        y = open_torch(lambda x: Spike.apply(x) + Quantised.apply(x, 2.0) + x, x)
        assert [region.name for region in graph.regions] == ["Spike", "Quantised"]
        off = gg.gradients(gg.sum(y), x, overrides="none")
        rules = {graph.regions[1]: lambda site, dy: 10 * dy, graph.regions[0]: gg.rules.stop()}
        other = gg.gradients(gg.sum(y), x, overrides=rules)
        found = gg.compile(x, [off, other])(A)
    np.testing.assert_array_equal(found[0], np.ones((3, 4)))
    np.testing.assert_array_equal(found[1], np.full((3, 4), 11.0))


class Spiking(nn.Module):
    """Leaky neurons over time."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 5)
        self.register_buffer("decay", torch.tensor(0.9))

    def forward(self, x):
        volt, spikes = 0, []
        for row in x.unbind(-1):
            volt = self.decay * volt + self.inner(row)
            spike = kept(volt - 1)
            volt = volt - spike.detach()
            spikes.append(spike)
        return torch.stack(spikes).mean(0)


def test_a_spiking_network():
    torch.manual_seed(0)
    module = Spiking().double()
    compare(opened(module, [ROW], 1), in_torch(module, [ROW], 1))


class Missing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2


class Deciding(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, dy):
        return dy if dy.sum() > 0 else -dy


class Dirty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)


class Writing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        return x + 1


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        return 5 * dy * ctx.saved_tensors[0]


def test_rules_that_cannot_be_kept_are_errors_that_name_them():
    rules = {"Missing": Missing, "Deciding": Deciding, "Writing": Writing, "Dirty": Dirty}
    with gg.Graph() as graph:
        x = gg.placeholder((3, 4))
        for name, rule in rules.items():
            with pytest.raises(gg.GradientError) as caught:
                open_torch(lambda x, rule=rule: rule.apply(x * 1), x)
            said = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
            assert name in said
            assert "test_open_torch.py:" in said
        assert len(graph.nodes) == 1
        assert not graph.regions


def test_torch_is_as_it_was():
    def state():
        apply = torch.autograd.Function.apply
        held = type(torch.autograd.Function)
        doors = [name for name in ("forward", "backward", "setup_context") if name in vars(held)]
        code = getattr(getattr(apply, "__func__", None), "__code__", None)
        return code, doors, torch.Tensor.register_hook, torch.autograd.grad

    before = state()
    seen = []

    def watching(x):
        def differentiate():
            t = torch.ones(2, requires_grad=True)
            kept(t).sum().backward()
            seen.append(t.grad)

        thread = threading.Thread(target=differentiate)
        thread.start()
        thread.join()
        return kept(x)

    with gg.Graph():
        x = gg.placeholder((3,))
        open_torch(watching, x)
        with pytest.raises(gg.GradientError):
            open_torch(Missing.apply, x)
    assert state() == before
    assert torch.equal(seen[0], torch.full((2,), 2 / 16))


def test_a_rule_that_is_differentiable_once_is_so():
    compare(opened(Once.apply, [A], 1), in_torch(Once.apply, [A], 1))
    with gg.Graph():
        x = gg.placeholder((3, 4))
        dx = gg.gradients(gg.sum(open_torch(Once.apply, x)), x)
        with pytest.raises(gg.GradientError):
            gg.gradients(gg.sum(dx), x)


def hooked(x):
    y = x * 2
    y.register_hook(lambda dy: dy * 3)
    return y


def test_hooks_that_would_be_lost_are_errors_that_name_them():
    of_module, of_parameter = nn.Sequential(nn.Linear(4, 2)), nn.Linear(4, 2)
    of_module[0].register_full_backward_hook(lambda *_: None)
    of_parameter.weight.register_hook(lambda dy: dy)
    seen = nn.Linear(4, 2)
    seen.register_forward_hook(lambda module, args, y: y * 2)
    with gg.Graph() as graph:
        x = gg.placeholder((3, 4), "float32")
        for fn, said in (
            (hooked, "hooked.*register_hook"),
            (of_module, "hooks on 0"),
            (of_parameter, "parameter weight"),
        ):
            with pytest.raises(gg.GradientError, match=said):
                open_torch(fn, x)
        assert len(graph.nodes) == 1
    (ours,), (theirs,) = (f(seen, [A.astype("float32")], 0) for f in (opened, in_torch))
    np.testing.assert_allclose(ours[0], theirs[0], 1e-5)


# --- what a program does not say -----------------------------------------------------------------


class Steep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, dy):
        return dy * 7


def steep_in_cond(x):
    return torch.cond(x.sum() > 0, lambda a: Steep.apply(a), lambda a: a.cos(), (x,))


def steep_in_scan(x):
    start = torch.zeros(4, dtype=x.dtype)
    return scan_of_torch(lambda c, a: (c + Steep.apply(a), c * 1.0), start, x)[0]


def steep_in_map(x):
    return map_of_torch(lambda a: Steep.apply(a), x)


def steep_in_while(x):
    start = torch.tensor(0), x
    return torch.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, Steep.apply(a)), start)[1]


@pytest.mark.parametrize("fn", [steep_in_cond, steep_in_scan, steep_in_map, steep_in_while])
def test_S44_a_rule_in_a_branch_or_body_is_an_error_that_names_it(fn):
    line = fn.__code__.co_firstlineno
    with gg.Graph() as graph:
        x = gg.placeholder((3, 4))
        for _ in range(2):  # torch remembers what it compiled
            with pytest.raises(gg.GradientError, match="rule of Steep, applied") as caught:
                open_torch(fn, x)
            at = int(str(caught.value).partition("test_open_torch.py:")[2].split(":")[0])
            assert line <= at <= line + 2
        assert len(graph.nodes) == 1


def half_tracked(x):
    with torch.no_grad():
        y = x * 2
    return y * x


def test_S44_no_grad_counts_in_branches_and_bodies():
    def fn(x):
        start = torch.zeros(4, dtype=x.dtype)
        return (
            torch.cond(x.sum() > -99, half_tracked, lambda a: a.cos(), (x,)),
            map_of_torch(half_tracked, x),
            scan_of_torch(lambda c, a: (c + half_tracked(a), c * 1.0), start, x)[0],
        )

    def plain(x):  # torch has no second gradients of these steps, or other ones
        return half_tracked(x), half_tracked(x), half_tracked(x).sum(0)

    compare(opened(fn, [A], 2), in_torch(plain, [A], 2))


def hooked_if_asked(x):
    y = x * 2
    if y.requires_grad:
        y.register_hook(lambda dy: dy * 10)
    return y


def hooked_node(x):
    y = x.sin()
    y.grad_fn.register_hook(lambda dx, dy: (dx[0] * 10,))
    return y


def hooked_before(x):
    y = x.sin()
    y.grad_fn.register_prehook(lambda dy: (dy[0] * 10,))
    return y


def hooked_saving(x):
    with torch.autograd.graph.saved_tensors_hooks(lambda a: a * 2, lambda a: a):
        return x**2


@pytest.mark.parametrize(
    ("fn", "said"),
    [
        (hooked_if_asked, "hooked_if_asked.*register_hook"),
        (hooked_node, "grad_fn.register_hook"),
        (hooked_before, "grad_fn.register_prehook"),
        (hooked_saving, "saved_tensors_hooks"),
    ],
)
def test_S44_hooks_of_every_kind_are_errors_with_their_lines(fn, said):
    with gg.Graph() as graph:
        x = gg.placeholder((3,))
        with pytest.raises(gg.GradientError, match=f"{said}.*test_open_torch.py:"):
            open_torch(fn, x)
        assert len(graph.nodes) == 1


def test_S44_arguments_require_gradients_as_code_may_ask():
    def fn(x):
        with torch.autograd.graph.save_on_cpu():
            y = x * 5 if x.requires_grad else x * 2
        return y if y.grad_fn is not None and "Mul" in y.grad_fn.name() else y * 2

    compare(opened(fn, [A], 1), in_torch(fn, [A], 1))
    compare(opened(lambda x: F.relu(x * 1, inplace=True), [A], 1), in_torch(F.relu, [A], 1))
    with gg.Graph():
        open_torch(nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 2)), np.ones((2, 4), "f"))


def written_untracked(x):
    y = x * 1
    with torch.no_grad():
        y.mul_(2)
    return y * x


def written_detached(x):
    y = x * 2
    y.detach()[0] = 5.0
    return y * x


def written_view(x):
    y = x * 2
    y.data.view(-1)[1:].mul_(3)
    return y * x


def written_data(x):
    y = x * 2
    y.data = x * 3
    return y * x


def written_in_a_branch(x):
    return torch.cond(x.sum() > 0, written_untracked, lambda a: a.cos(), (x,))


@pytest.mark.parametrize(
    "fn",
    [written_untracked, written_detached, written_view, written_data, written_in_a_branch],
)
def test_S44_writes_that_gradients_do_not_see_are_errors_with_their_lines(fn):
    with gg.Graph() as graph:
        x = gg.placeholder((3,))
        with pytest.raises(gg.GradientError, match=r"keep the write .*test_open_torch\.py:"):
            open_torch(fn, x)
        assert len(graph.nodes) == 1


def test_S44_what_is_detached_in_place_has_no_gradient():
    def fn(x):
        y = x * 2
        y.detach_()
        z = torch.zeros_like(x)
        with torch.no_grad():
            z += 3
        z[0] = x[1]
        return y * x + z, x.data * x

    compare(opened(fn, [A], 2), in_torch(fn, [A], 2))


class Stateful(nn.Module):
    def __init__(self, write):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3, dtype=torch.float64))
        self.register_buffer("k", torch.ones(3, dtype=torch.float64))
        self.n, self.seen, self.log, self.write = 0, None, [], write

    def forward(self, x):
        self.write(self, x)
        return x * self.w * self.k


def clamping(module, x):
    with torch.no_grad():
        module.w.clamp_(-1, 1)


def replacing(module, x):
    module.k = module.k * 2


def counting(module, x):
    module.n += 1


def noting(module, x):
    module.seen = x * 2


def logging(module, x):
    module.log.append(x)


@pytest.mark.parametrize("updates", [False, True])
@pytest.mark.parametrize(
    ("write", "said"),
    [
        (clamping, "parameter 'w' at .*test_open_torch.py:"),
        (replacing, "Stateful.k, .*test_open_torch.py:"),
        (counting, "Stateful.n, .*test_open_torch.py:"),
        (noting, "Stateful.seen, .*test_open_torch.py:"),
        (logging, "Stateful.log"),
    ],
)
def test_S44_writes_that_would_be_lost_are_errors_and_undone(write, said, updates):
    module = Stateful(write)
    with gg.Graph() as graph:
        x = gg.placeholder((3,))
        with pytest.raises((gg.GradientError, gg.GraphError), match=said):
            open_torch(module, x, updates=updates)
        assert len(graph.nodes) == 1
    assert (module.n, module.seen, module.log) == (0, None, [])
    assert torch.equal(module.k, torch.ones(3, dtype=torch.float64))


def test_S44_modules_made_meanwhile_and_equal_values_are_no_writes():
    def harmless(module, x):
        module.n = 0
        made = nn.ReLU()
        made.note = made(x)

    module = Stateful(harmless)
    compare(opened(module, [A[0, :3]], 1), in_torch(module, [A[0, :3]], 1))


def test_S44_operators_whose_gradients_or_values_would_be_others_are_refused():
    target = torch.tensor([[1, 0, -1, 2]])
    with gg.Graph():
        x = gg.placeholder((1, 4))
        with pytest.raises(gg.GraphError, match="multilabel_margin_loss"):
            open_torch(lambda x: F.multilabel_margin_loss(x, target), x)
        with pytest.raises(gg.GraphError, match="scale_grad_by_freq"):
            open_torch(lambda x: F.embedding(target[:, :1], x, scale_grad_by_freq=True), x)


class Asking(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x * 2 + y.detach()

    @staticmethod
    def backward(ctx, dy):
        first, second = ctx.needs_input_grad
        return dy * (3 if second else 1), dy * 4 if first else dy


class InNumpy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.from_numpy(np.sin(x.numpy()))

    @staticmethod
    def backward(ctx, dy):
        return dy


def seeded(x):
    torch.manual_seed(0)
    return x * torch.randn(4)


@pytest.mark.parametrize(
    ("fn", "error", "said"),
    [
        (lambda x: torch.func.vmap(kept)(x), gg.GradientError, "the rule of Spike, applied at"),
        (lambda x: torch.func.jvp(kept, (x,), (x,)), gg.GradientError, "the rule of Spike"),
        (lambda x: torch.func.grad(lambda x: x.sin().sum())(x), gg.GraphError, "torch.func.grad"),
        (lambda x: torch.func.jacrev(torch.sin)(x), gg.GraphError, r"autograd\.grad\("),
        (InNumpy.apply, gg.GradientError, r"its forward cannot be opened\.\nRuntimeError: \.numpy"),
        (seeded, gg.GraphError, r"torch\.manual_seed"),
    ],
)
def test_S44_what_torch_exports_without_a_rule_or_its_numbers_is_an_error(fn, error, said):
    seed, increment = torch.manual_seed, TRANSFORMS.grad_increment_nesting
    with gg.Graph() as graph:
        x = gg.placeholder((3, 4))
        with pytest.raises(error, match=said) as caught:
            open_torch(fn, x)
        assert "test_open_torch.py:" in str(caught.value)
        assert len(graph.nodes) == 1
        compare(opened(torch.func.vmap(torch.sin), [A], 1), in_torch(torch.sin, [A], 1))
    assert (torch.manual_seed, TRANSFORMS.grad_increment_nesting) == (seed, increment)


def test_S44_ctx_says_which_inputs_need_gradients():
    def fn(x):
        with torch.no_grad():
            hidden = x * 2
        constant = torch.ones(3, 4, dtype=x.dtype)
        pairs = (x, x), (x, constant), (x, x.detach()), (x, hidden), (x.detach(), x)
        return [Asking.apply(a, b) for a, b in pairs]

    compare(opened(fn, [A], 1), in_torch(fn, [A], 1))


def test_S44_errors_name_what_they_are_of():
    with gg.Graph() as graph:
        x = gg.placeholder((3, 4))
        with pytest.raises(gg.GradientError, match=r"Dirty, applied at .*ctx\.mark_dirty"):
            open_torch(lambda x: Dirty.apply(x * 1), x)
        with pytest.raises(gg.GradientError, match="requires a gradient"):
            open_torch(torch.sin, torch.ones(3, requires_grad=True))
        assert len(graph.nodes) == 1
        rows = gg.placeholder(("Rows", 4))
        with pytest.raises(RuntimeError, match="shape") as caught:
            open_torch(lambda x: x.reshape(7, 4), rows)
        assert "gg.assume(Rows >= 8)" in "".join(caught.value.__notes__)


# --- names, lengths, refusals ------------------------------------------------------------------


def test_operators_are_those_of_the_vocabulary():
    def fn(x):
        y = [F.relu(x), F.gelu(x), F.silu(x), x.softmax(0), x.log_softmax(0), x.sigmoid(), F.elu(x)]
        y += [F.leaky_relu(x), F.hardswish(x), F.layer_norm(x, (4,)), F.softplus(x), x.logsumexp(0)]
        return [*y, F.mish(x), F.selu(x), F.relu6(x), F.logsigmoid(x), F.hardtanh(x)]

    with gg.Graph() as graph:
        x = gg.placeholder((3, 4))
        for name in ("relu", "gelu", "silu", "softmax", "log_softmax", "sigmoid", "elu", "mish"):
            getattr(gg.nn, name)(x)
        kinds = {node.type for node in graph.nodes}
    with gg.Graph() as graph:
        x = gg.placeholder((3, 4))
        open_torch(fn, x)
        assert kinds <= {node.type for node in graph.nodes}
        y = open_torch(lambda x: F.relu(x) * x, x)
        graph.mark(gg.select.op("Relu"), gg.rules.guided())
        assert gg.gradients(gg.sum(y), x) is not None


def test_names_scopes_lines_and_parameters():
    module = Convolutional().eval()
    module.conv1.weight.requires_grad_(False)
    with gg.Graph() as graph:
        x = gg.placeholder(IMAGE.shape, "float32", name="x")
        y = open_torch(module, x)
        names = [v.node.name for v in graph.variables]
        assert set(names) == set(module.state_dict())
        assert not graph.node("conv1.weight").op.trainable
        assert not graph.node("norm.running_mean").op.trainable
        assert graph.node("head.weight").op.trainable
        conv = next(node for node in graph.nodes if node.type == "Conv2D")
        assert conv.name.startswith("conv1/")
        assert conv.where.startswith("test_open_torch.py:")
        count = len(graph.variables)
        open_torch(module, gg.nn.relu(x))
        open_torch(module.forward, x)
        assert len(graph.variables) == count
        assert y.shape == (2, 2)
    with gg.Graph() as graph:
        open_torch(module, gg.placeholder(IMAGE.shape, "float32"), parameters="constants")
        assert not graph.variables


def test_shared_weights_are_one_variable():
    with gg.Graph() as graph:
        open_torch(Tied(), gg.placeholder((3, 4), "float32"))
        assert [v.node.name for v in graph.variables] == [
            "inner.weight",
            "inner.bias",
            "outer.bias",
        ]


def test_arguments_and_results_keep_their_structure():
    def fn(pair, scale, *, shift=None):
        return {"sum": pair[0] + pair[1] * scale, "rest": (None, 3, [pair[0] > 0])}

    with gg.Graph():
        x = gg.placeholder((3,))
        made = open_torch(fn, (x, np.ones(3)), 2)
        assert made["rest"][:2] == (None, 3)
        found = gg.evaluate([made["sum"], made["rest"][2][0]], {x: [-1.0, 0.0, 1.0]})
    np.testing.assert_array_equal(found[0], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(found[1], [False, False, True])


def test_exported_programs_are_opened_too():
    module = Perceptron().double().eval()
    program = torch.export.export(module, (torch.tensor(A),))
    blocked = torch.export.export(Blocked().double(), (torch.tensor(A),))
    compare(opened(program, [A], 0), in_torch(module, [A], 0))
    for _ in range(2):
        compare(opened(blocked, [A], 1), in_torch(Blocked(), [A], 1))
    with gg.Graph():
        with pytest.raises(gg.ShapeError, match="exported for"):
            open_torch(program, gg.placeholder((3, 5)))
        with pytest.raises(gg.ShapeError, match="exported for"):
            open_torch(program, gg.placeholder(("N", 4)))
        with pytest.raises(gg.ShapeError, match="takes 1 tensors"):
            open_torch(program)


class Blocked(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            y = torch.tanh(x)
        return x * y


def test_open_lengths_stay_open():
    def fn(x, y):
        n = x.shape[0]
        z = torch.cat([x - x.mean(0), y * n])[: n + 1] @ torch.ones(3, 2)
        z = z + torch.arange(n + 1)[:, None] / n + torch.zeros(y.shape[0] - n, 2)
        return z.reshape(-1, 1, 2).expand(-1, 4, 2), z.flatten().view(2 * n + 2), x.sum() / n

    with default_dtype(torch.float64):
        with gg.Graph():
            N = gg.Length("N")
            x, y = gg.placeholder((N, 3)), gg.placeholder((2 * N + 1, 3))
            made = open_torch(fn, x, y)
            assert made[0].shape == (N + 1, 4, 2)
            assert made[1].shape == (2 * N + 2,)
            run = gg.compile([x, y], [*made, gg.gradients(gg.sum(gg.sin(made[0])), x)])
        for n in (2, 3, 6):
            arrays = [numbers(n, 3), numbers(2 * n + 1, 3, seed=1)]
            a, b = (torch.tensor(array, requires_grad=True) for array in arrays)
            theirs = fn(a, b)
            slope = torch.autograd.grad(torch.sin(theirs[0]).sum(), a)[0]
            compare([run(*arrays)], [[t.detach().numpy() for t in (*theirs, slope)]])


def test_modules_of_an_open_batch():
    for name in ("convolutional", "vision"):
        make, array = MODULES[name]
        module = make().double().eval()
        with gg.Graph():
            x = gg.placeholder(("N", *array.shape[1:]))
            run = gg.compile(x, open_torch(module, x), backend="numpy")
        for n in (2, 5):
            batch = numbers(n, *array.shape[1:])
            with torch.no_grad():
                theirs = module(torch.tensor(batch)).numpy()
            np.testing.assert_allclose(run(batch), theirs, 1e-9, 1e-10)


def test_images_of_open_sizes():
    net = nn.Sequential(
        nn.Conv2d(4, 4, 3, 2, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Upsample(scale_factor=2)
    ).double()
    with gg.Graph():
        x = gg.placeholder(("N", 4, "H", "W"))
        with pytest.raises(Exception, match="Constraints violated") as caught:
            open_torch(net, x)
        assert any("gg.assume" in note for note in caught.value.__notes__)
        gg.assume(x.shape[2] >= 7, x.shape[3] >= 7)
        y = open_torch(net, x)
        run = gg.compile(x, [y, gg.gradients(gg.sum(gg.sin(y)), x)], backend="numpy")
    for shape in ((2, 4, 8, 10), (3, 4, 9, 7)):
        (values, (slope,)) = in_torch(net, [numbers(*shape)], 1)
        compare([run(numbers(*shape))], [[*values, slope]])


def test_loops_and_choices_of_torch():
    higher = torch._higher_order_ops

    def fn(x):
        chosen = torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x * x, (x,))
        return chosen, higher.scan(lambda c, r: (c * 0.5 + r, c * r), x[0], x)[1]

    for array in (A, -np.abs(A)):
        compare(opened(fn, [array], 0), in_torch(fn, [array], 0))


def test_what_has_no_form_is_said_at_once():
    def fn(x):
        return torch.linalg.eig(x)[0].real.sum() + torch.nonzero(x).sum() + x.sum().item()

    outside = nn.Linear(3, 2).double()
    with gg.Graph() as graph:
        x = gg.placeholder((3, 3), name="x")
        with pytest.raises(gg.GraphError, match=r"(?s)linalg_eig: 1 time,.*nonzero: 1 "):
            open_torch(fn, x)
        with pytest.raises(
            gg.GraphError, match=r"index.Tensor: 1 time.*torch.py:.*a computed mask"
        ):
            open_torch(lambda x: torch.relu(x)[x > 0], x)
        with pytest.raises(gg.GradientError, match=r"shapes \(2, 3\)"):
            open_torch(lambda x: F.linear(x, outside.weight), x)
        with pytest.raises(TypeError, match="module or function"):
            open_torch(3, x)
        with pytest.raises(ValueError, match="parameters is one of"):
            open_torch(torch.sin, x, parameters="all")
        with pytest.raises(Exception) as caught:
            open_torch(lambda x: x if x.sum() > 0 else -x, x)
        assert any("from_torch" in note for note in caught.value.__notes__)
        assert len(graph.nodes) == 1
        open_torch(lambda x: F.linear(x, outside.weight), x, parameters="constants")
