"""Calls of special functions, by SciPy's names, and of layers, as graphgrad and torch say them.

The arrays are those of numpy_calls.py; images are made of T: its axes as (N, C, W), or as (1, C, H, W).
"""

from __future__ import annotations

SPECIAL = """
beta(P, G) betainc(P, G, abs(U)) betaincinv(P, G, abs(U)) betaln(P, G) binom(G, P) dawsn(A) digamma(P) digamma(A)
entr(P) entr(A) erf(A) erfc(A) erfcinv(P) erfcx(A) erfinv(U) exp1(P) expi(A) expi(P) expit(A) expn(2,P) expn(1,P)
factorial(P) fresnel(A) gamma(P) gamma(A) gammainc(P,G) gammaincc(P,G) gammainc(P,P) gammaincc(G,P)
gammainccinv(P,abs(U)) gammaincinv(P,abs(U)) gammaln(P) gammaln(A) gammasgn(A) hyp1f1(1.5,2.5,A) hyp2f1(0.5,1.5,2.5,U)
i0(A) i0e(A) i1(A) i1e(A) iv(1.5,P) ive(0.5,P) iv(2.0,A) j0(A) j1(A) jv(1.5,P) jv(2.0,A) k0(P) k0e(P) k1(P) k1e(P)
kl_div(P,G) kv(1.5,P) kve(0.5,P) log_ndtr(A) log_ndtr(9*A) log_softmax(A,axis=1) log_softmax(A) logit(abs(U))
logsumexp(A) logsumexp(A,axis=0) logsumexp(A,1,P) logsumexp(A,axis=0,b=B,return_sign=True) logsumexp(A,1,keepdims=True)
multigammaln(G+2,3) ndtr(A) ndtri(abs(U)) owens_t(A,B) poch(P,G) polygamma(1,P) polygamma(2,G) rel_entr(P,G) sici(P)
softmax(A,axis=0) softmax(A) spence(P) spence(G) xlog1py(A,P) xlogy(A,P) xlogy(A*0,P) y0(P) y1(P) yv(1.5,P) zeta(2.5,P)
zeta(3.0,G) wofz(A) wofz(Z) comb(G,P) loggamma(P) boxcox(P,B) boxcox1p(P,B) boxcox(P,B*0) boxcox1p(P,B*1e-300) sph_harm_y(2,1,P,G)
"""


def special_calls() -> dict[str, list[str]]:
    """Name -> the calls of it, as expressions after `sp.`."""
    found: dict[str, list[str]] = {}
    for call in SPECIAL.replace(", ", ",").split():
        found.setdefault(call.partition("(")[0], []).append(call)
    return found


TORCH_TABLE = """
nn.sigmoid(A) | F.sigmoid(A)
nn.relu(A) | F.relu(A)
nn.relu6(3 * A) | F.relu6(3 * A)
nn.leaky_relu(A) | F.leaky_relu(A)
nn.leaky_relu(A, 0.2) | F.leaky_relu(A, 0.2)
nn.elu(A) | F.elu(A)
nn.elu(A, 0.5) | F.elu(A, 0.5)
nn.celu(A, 1.5) | F.celu(A, 1.5)
nn.selu(A) | F.selu(A)
nn.silu(A) | F.silu(A)
nn.mish(A) | F.mish(A)
nn.softplus(A) | F.softplus(A)
nn.softplus(30 * A) | F.softplus(30 * A, threshold=1e9)
nn.log_sigmoid(A) | F.logsigmoid(A)
nn.gelu(A) | F.gelu(A)
nn.gelu(A, approximate=True) | F.gelu(A, approximate='tanh')
nn.glu(T[..., :1].repeat(2, -1) * A[0, 0]) | F.glu(T[..., :1].repeat_interleave(2, -1) * A[0, 0])
nn.hard_sigmoid(4 * A) | F.hardsigmoid(4 * A)
nn.hard_silu(4 * A) | F.hardswish(4 * A)
nn.hard_tanh(A) | F.hardtanh(A)
nn.hard_tanh(A, -0.3, 0.6) | F.hardtanh(A, -0.3, 0.6)
nn.hardshrink(A) | F.hardshrink(A)
nn.softshrink(A, 0.3) | F.softshrink(A, 0.3)
nn.tanhshrink(A) | F.tanhshrink(A)
nn.soft_sign(A) | F.softsign(A)
nn.threshold(A, 0.1, 20.0) | F.threshold(A, 0.1, 20.0)
nn.prelu(T, V, axis=1) | F.prelu(T, V)
nn.rrelu(A, 0.1, 0.4) | F.rrelu(A, 0.1, 0.4)
nn.softmax(A) | F.softmax(A, -1)
nn.softmax(T, 0) | F.softmax(T, 0)
nn.softmin(A) | F.softmin(A, -1)
nn.log_softmax(T, 1) | F.log_softmax(T, 1)
nn.normalize(A) | F.normalize(A, dim=-1)
nn.normalize(T, 3.0, 0) | F.normalize(T, p=3.0, dim=0)
nn.layer_norm(A, V, W) | F.layer_norm(A, (A.shape[1],), V, W)
nn.layer_norm(T, axis=(1, 2)) | F.layer_norm(T, T.shape[1:])
nn.rms_norm(A, V, epsilon=1e-5) | F.rms_norm(A, (A.shape[1],), V, eps=1e-5)
nn.rms_norm(T, axis=(1, 2)) | F.rms_norm(T, T.shape[1:])
nn.group_norm(T, 1, V, W, axis=1) | F.group_norm(T, 1, V, W)
nn.group_norm(T, 3, axis=1) | F.group_norm(T, 3)
nn.instance_norm(T, V, W, axis=1) | F.instance_norm(T, weight=V, bias=W)
nn.batch_norm(T, V, W, axis=1)[0] | F.batch_norm(T, None, None, V, W, training=True)
nn.batch_norm(T, V, W, axis=1, running=(gg.stop_gradient(P[0]), gg.stop_gradient(G[0])), training=False)[0] | F.batch_norm(T, P[0].detach(), G[0].detach(), V, W)
nn.local_response_norm(T[None], 2, axis=1) | F.local_response_norm(T[None], 2)
nn.linear(A, S) | F.linear(A, S)
nn.linear(T.mT, S, V) | F.linear(T.mT, S, V)
nn.bilinear(A, B, S[None]) | F.bilinear(A, B, S[None])
nn.embedding(I % 3, S) | F.embedding(I % 3, S)
nn.embedding(K, S, 1) | F.embedding(K, S, 1)
nn.embedding_bag(I % 3, S) | F.embedding_bag(I % 3, S)
nn.embedding_bag(I % 3, S, 'sum', weights=P) | F.embedding_bag(I % 3, S, mode='sum', per_sample_weights=P)
nn.embedding_bag(I % 3, S, 'max') | F.embedding_bag(I % 3, S, mode='max')
nn.one_hot(I, 9, 'int64') | F.one_hot(I, 9)
nn.cross_entropy(A, gg.nn.softmax(B)) | F.cross_entropy(A, F.softmax(B, -1), reduction='none')
nn.cross_entropy(S, K) | F.cross_entropy(S, K, reduction='none')
nn.cross_entropy(S, K, reduction='mean', label_smoothing=0.1) | F.cross_entropy(S, K, label_smoothing=0.1)
nn.cross_entropy(S, K, reduction='mean', weight=P[0], ignore_index=0) | F.cross_entropy(S, K, weight=P[0], ignore_index=0)
nn.nll_loss(S, K, V) | F.nll_loss(S, K, V)
nn.nll_loss(S, K, reduction='sum', ignore_index=1) | F.nll_loss(S, K, reduction='sum', ignore_index=1)
nn.binary_cross_entropy(abs(U), abs(U) * 0.5, P) | F.binary_cross_entropy(abs(U), abs(U) * 0.5, P)
nn.binary_cross_entropy_with_logits(A, abs(U), pos_weight=P[0]) | F.binary_cross_entropy_with_logits(A, abs(U), pos_weight=P[0])
nn.mse_loss(A, B) | F.mse_loss(A, B)
nn.mse_loss(A, B, 'sum', weight=P) | F.mse_loss(A, B, reduction='sum', weight=P)
nn.l1_loss(A, B) | F.l1_loss(A, B)
nn.huber_loss(A, B, delta=0.7) | F.huber_loss(A, B, delta=0.7)
nn.smooth_l1_loss(A, B, 'none', 0.5) | F.smooth_l1_loss(A, B, reduction='none', beta=0.5)
nn.kl_div(A, P) | F.kl_div(A, P, reduction='mean')
nn.kl_div(A, B, 'sum', True) | F.kl_div(A, B, reduction='sum', log_target=True)
nn.poisson_nll_loss(A, P) | F.poisson_nll_loss(A, P)
nn.poisson_nll_loss(P, G, False, True, reduction='none') | F.poisson_nll_loss(P, G, False, True, reduction='none')
nn.gaussian_nll_loss(A, B, P, True) | F.gaussian_nll_loss(A, B, P, True)
nn.hinge_embedding_loss(A, 2 * M - 1) | F.hinge_embedding_loss(A, 2 * M.long() - 1)
nn.margin_ranking_loss(A, B, 2 * M - 1, 0.3) | F.margin_ranking_loss(A, B, 2 * M.long() - 1, 0.3)
nn.soft_margin_loss(A, 2 * M - 1) | F.soft_margin_loss(A, 2 * M.long() - 1)
nn.multi_margin_loss(S, K, 2, 0.5, P[0]) | F.multi_margin_loss(S, K, 2, 0.5, P[0])
nn.multilabel_margin_loss(S, K[None] + 0 * S.astype('int64')) | F.multilabel_margin_loss(S, K[None] + 0 * S.long())
nn.multilabel_soft_margin_loss(A, M) | F.multilabel_soft_margin_loss(A, M.to(A.dtype))
nn.cosine_similarity(A, B) | F.cosine_similarity(A, B, -1)
nn.cosine_similarity(T, T * 2 + 1, 1) | F.cosine_similarity(T, T * 2 + 1, 1)
nn.cosine_embedding_loss(A, B, 2 * M[:, 0] - 1, 0.1) | F.cosine_embedding_loss(A, B, 2 * M[:, 0].long() - 1, 0.1)
nn.pairwise_distance(A, B) | F.pairwise_distance(A, B)
nn.pairwise_distance(A, B, 3.0, keepdims=True) | F.pairwise_distance(A, B, 3.0, keepdim=True)
nn.pdist(A) | F.pdist(A)
nn.pdist(A, 1.0) | F.pdist(A, 1.0)
nn.triplet_margin_loss(A, B, P) | F.triplet_margin_loss(A, B, P)
nn.triplet_margin_loss(A, B, P, 2.0, 3.0, swap=True, reduction='none') | F.triplet_margin_loss(A, B, P, 2.0, 3.0, swap=True, reduction='none')
nn.conv(T, S[:, :, None], padding='VALID', data_format='NCW') | F.conv1d(T, S[:, :, None].permute(2, 1, 0))
nn.conv(T, S[None] * V[:, None, None], padding='SAME', data_format='NCW') | F.conv1d(T, (S[None] * V[:, None, None]).permute(2, 1, 0), padding='same')
nn.conv(T[None], S[None, :, :2, None] + V, padding=((1, 1), (2, 0)), data_format='NCHW') | F.conv2d(F.pad(T[None], (2, 0, 1, 1)), (S[None, :, :2, None] + V).permute(3, 2, 0, 1))
nn.conv(T.mT, S[:2, :, None] + V, 2, 'VALID', 'NWC', 2) | F.conv1d(T, (S[:2, :, None] + V).permute(2, 1, 0), stride=2, dilation=2).mT
nn.conv(T, S[:2, None], 1, 'VALID', 'NCW', groups=3) | F.conv1d(T, S[:2, None].permute(2, 1, 0), groups=3)
nn.conv_transpose(T, S[:2, :, None] + V[:, None], 2, 'VALID', 'NCW') | F.conv_transpose1d(T, (S[:2, :, None] + V[:, None]).permute(2, 1, 0), stride=2)
nn.avg_pool(T, 1, data_format='NCW') | F.avg_pool1d(T, 1)
nn.avg_pool(T[None], (1, 2), data_format='NCHW') | F.avg_pool2d(T[None], (1, 2))
nn.avg_pool(T[None], 2, 1, 1, 'NCHW', count_include_pad=True) | F.avg_pool2d(T[None], 2, 1, 1)
nn.avg_pool(T, 3, 2, 1, 'NCW', True) | F.avg_pool1d(T, 3, 2, 1, ceil_mode=True, count_include_pad=False)
nn.max_pool(T[None], (2, 2), 1, data_format='NCHW') | F.max_pool2d(T[None], (2, 2), 1)
nn.max_pool(T, 2, 2, 1, 'NCW', ceil_mode=True) | F.max_pool1d(T, 2, 2, 1, ceil_mode=True)
nn.max_pool_with_indices(T, 2, 1, data_format='NCW') | F.max_pool1d(T, 2, 1, return_indices=True)
nn.lp_pool(abs(T), 2.0, 2, data_format='NCW') | F.lp_pool1d(abs(T), 2.0, 2)
nn.adaptive_avg_pool(T, 3, 'NCW') | F.adaptive_avg_pool1d(T, 3)
nn.adaptive_max_pool(T[None], (1, 3), 'NCHW') | F.adaptive_max_pool2d(T[None], (1, 3))
nn.adaptive_max_pool_with_indices(T[None], (1, 3), 'NCHW') | F.adaptive_max_pool2d_with_indices(T[None], (1, 3))
nn.adaptive_max_pool_with_indices(T, 3, 'NCW') | F.adaptive_max_pool1d_with_indices(T, 3)
nn.unfold(T[None], 2, data_format='NCHW') | F.unfold(T[None], 2)
nn.unfold(T[None], 2, 2, 1, 'NCHW', 2) | F.unfold(T[None], 2, 2, 1, 2)
nn.fold(gg.nn.unfold(T[None], 2, data_format='NCHW'), (3, 4), 2, data_format='NCHW') | F.fold(F.unfold(T[None], 2), (3, 4), 2)
nn.pixel_shuffle(T[None].reshape((1, 24, 1, 1)), 2, 'NCHW') | F.pixel_shuffle(T[None].reshape(1, 24, 1, 1), 2)
nn.pixel_unshuffle(T[None][..., :2, :2], 2, 'NCHW') | F.pixel_unshuffle(T[None][..., :2, :2], 2)
nn.channel_shuffle(T[:, :, :].mT[None], 2, 'NCHW') | F.channel_shuffle(T.mT[None], 2)
nn.interpolate(T, 5, data_format='NCW') | F.interpolate(T, 5)
nn.interpolate(T[None], (5, 6), mode='linear', data_format='NCHW') | F.interpolate(T[None], (5, 6), mode='bilinear')
nn.interpolate(T[None], scale_factor=2, mode='linear', align_corners=True, data_format='NCHW') | F.interpolate(T[None], scale_factor=2, mode='bilinear', align_corners=True)
nn.interpolate(T[None], (5, 6), mode='cubic', data_format='NCHW') | F.interpolate(T[None], (5, 6), mode='bicubic')
nn.affine_grid(T[..., :3][:, :2], (3, 4)) | F.affine_grid(T[..., :3][:, :2], (2, 1, 3, 4), align_corners=False)
nn.grid_sample(T[None], U[None, :, :2, None] + 0 * V[:2], data_format='NCHW') | F.grid_sample(T[None], U[None, :, :2, None] + 0 * V[:2], align_corners=False)
nn.grid_sample(T[None], 2 * U[None, :, :2, None] + 0 * V[:2], 'nearest', 'border', True, 'NCHW') | F.grid_sample(T[None], 2 * U[None, :, :2, None] + 0 * V[:2], 'nearest', 'border', True)
nn.grid_sample(T[None], 2 * U[None, :, :2, None] + 0 * V[:2], 'bilinear', 'reflection', False, 'NCHW') | F.grid_sample(T[None], 2 * U[None, :, :2, None] + 0 * V[:2], 'bilinear', 'reflection', False)
nn.scaled_dot_product_attention(T, T[:, ::-1], 2 * T) | F.scaled_dot_product_attention(T, T.flip(1), 2 * T)
nn.scaled_dot_product_attention(T, T + 1, 2 * T, is_causal=True, scale=0.3) | F.scaled_dot_product_attention(T, T + 1, 2 * T, is_causal=True, scale=0.3)
nn.scaled_dot_product_attention(T, T + 1, 2 * T, S) | F.scaled_dot_product_attention(T, T + 1, 2 * T, S)
nn.squareplus(A) | (A + (A * A + 4).sqrt()) / 2
nn.logmeanexp(A, 1) | A.logsumexp(1) - (0 * A + 1).sum(1).log()
nn.log1mexp(P) | torch.log1p(-torch.exp(-P))
nn.standardize(A) | F.layer_norm(A, A.shape[-1:])
nn.dropout(A, 0.5, training=False) | F.dropout(A, 0.5, training=False)
cummax(A, 1) | torch.cummax(A, 1)[0]
cummin(A, 0) | torch.cummin(A, 0)[0]
topk(A, 1)[0] | torch.topk(A, 1)[0]
topk(A, 2)[1] | torch.topk(A, 2)[1]
logsumexp(A, 1) | torch.logsumexp(A, 1)
logsumexp(T, (0, 2), True) | torch.logsumexp(T, (0, 2), True)
at(V)[K].add(W) | V.index_add(0, K, W)
at(V)[K].set(W) | V.index_put((K,), W)
at(A)[:, 1].set(7.0) | torch.cat([A[:, :1], 0 * A[:, 1:2] + 7.0, A[:, 2:]], 1)
at(A)[M].set(0.0) | torch.where(M, 0 * A, A)
at(V)[J].min(W) | V.scatter_reduce(0, J, W, 'amin')
at(V)[J].max(W) | V.scatter_reduce(0, J, W, 'amax')
at(V)[J].multiply(W) | V.scatter_reduce(0, J, W, 'prod')
scatter_add(V, K, W) | V.index_add(0, K, W)
A[:, ::-1] | A.flip(1)
A[M] | A[M]
A[None, ..., K] | A[None, ..., K]
T[:, K, -1] | T[:, K, -1]
T[..., 1:3:2, :] | T[..., 1:3:2, :]
dynamic_slice(A, (0, 1), (2, 2)) | A[:, 1:3]
clip(A, B, P) | torch.clamp(A, B, P)
where(M, A, B) | torch.where(M, A, B)
nan_to_num(X) | torch.nan_to_num(X)
special.log_softmax(A, 1) | F.log_softmax(A, 1)
linalg.expm(S) | torch.linalg.matrix_exp(S)
linalg.expm(S / 9 + A[0, 0]) | torch.linalg.matrix_exp(S / 9 + A[0, 0])
linalg.solve_triangular(S, T[0] + 0 * S[:, :1]) | torch.linalg.solve_triangular(S.triu(), T[0] + 0 * S[:, :1], upper=True)
linalg.lu(S) | torch.linalg.lu(S)
linalg.cho_solve(gg.linalg.cho_factor(S), V[:, None]) | torch.cholesky_solve(V[:, None], torch.linalg.cholesky(S))
linalg.pinv(A) | torch.linalg.pinv(A)
linalg.svd(A, full_matrices=False)[1] | torch.linalg.svd(A, full_matrices=False)[1]
linalg.eigvalsh(S) | torch.linalg.eigvalsh(S)
linalg.inv(S + A[0, 0]) | torch.linalg.inv(S + A[0, 0])
linalg.det(S + A[0, 0]) | torch.linalg.det(S + A[0, 0])
linalg.slogdet(S)[1] | torch.linalg.slogdet(S)[1]
linalg.cond(S) | torch.linalg.cond(S)
linalg.cholesky(S) | torch.linalg.cholesky(S)
linalg.vector_norm(T, axis=(0, 2), ord=3) | torch.linalg.vector_norm(T, 3, (0, 2))
linalg.matrix_norm(S, ord=2) | torch.linalg.matrix_norm(S, 2)
linalg.multi_dot([A, S, V]) | torch.linalg.multi_dot([A, S, V])
linalg.eig(S + A[0, 0])[0].real.sum() | torch.linalg.eig(S + A[0, 0])[0].real.sum()
linalg.lstsq(S, V[:, None])[0] | torch.linalg.lstsq(S, V[:, None])[0]
linalg.cross(S, S + A[0, 0]) | torch.linalg.cross(S, S + A[0, 0])
fft.fft(T, axis=1) | torch.fft.fft(T, dim=1)
fft.irfft(T, 5) | torch.fft.irfft(T, 5)
fft.rfft2(T, norm='ortho') | torch.fft.rfft2(T, norm='ortho')
fft.hfft(T, 6, 0, 'forward') | torch.fft.hfft(T, 6, 0, 'forward')
"""
"""Calls, as graphgrad says them after `gg.`, and as torch does. An index stands as it is."""

SCIPY_TABLE = """
linalg.expm(S / 9 + A[0, 0]) | scipy.linalg.expm(S / 9 + A[0, 0])
linalg.solve_triangular(S, V) | scipy.linalg.solve_triangular(S, V)
linalg.solve_triangular(S, V, lower=True, trans=1) | scipy.linalg.solve_triangular(S, V, lower=True, trans=1)
linalg.solve_triangular(S, S, unit_diagonal=True) | scipy.linalg.solve_triangular(S, S, unit_diagonal=True)
linalg.lu(S) | scipy.linalg.lu(S)
linalg.lu_factor(S)[0] | scipy.linalg.lu_factor(S)[0]
linalg.lu_solve(gg.linalg.lu_factor(S), V, trans=1) | scipy.linalg.lu_solve(scipy.linalg.lu_factor(S), V, trans=1)
linalg.cho_solve(gg.linalg.cho_factor(S), V) | scipy.linalg.cho_solve(scipy.linalg.cho_factor(S), V)
linalg.pinv(A) | scipy.linalg.pinv(A)
linalg.eigvalsh(S) | scipy.linalg.eigvalsh(S)
logsumexp(A, 1, True) | scipy.special.logsumexp(A, 1, keepdims=True)
nn.softmax(T, (0, 2)) | scipy.special.softmax(T, (0, 2))
"""
"""Calls, as graphgrad says them after `gg.`, and as SciPy does."""


def _pairs(table: str) -> dict[str, dict[str, str]]:
    """Function -> {our call: the peer's}."""
    found: dict[str, dict[str, str]] = {}
    for line in table.strip().splitlines():
        ours, theirs = line.split(" | ")
        ours = ours if ours[1] == "[" else f"gg.{ours}"
        name = ours.removeprefix("gg.").partition("(")[0].partition("[")[0]
        found.setdefault(name, {})[ours] = theirs
    return found


TORCH = _pairs(TORCH_TABLE)
LINALG = _pairs(SCIPY_TABLE)
