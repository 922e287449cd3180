"""Calls of special functions, by SciPy's names, and of layers, as graphgrad and torch say them.

The arrays are those of numpy_calls.py; x of layers is made of T.
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


TORCH = {
    "sigmoid": {"gg.nn.sigmoid(A)": "F.sigmoid(A)"},
    "relu": {"gg.nn.relu(A)": "F.relu(A)"},
    "leaky_relu": {"gg.nn.leaky_relu(A)": "F.leaky_relu(A)"},
    "elu": {"gg.nn.elu(A)": "F.elu(A)", "gg.nn.elu(A, 0.5)": "F.elu(A, 0.5)"},
    "silu": {"gg.nn.silu(A)": "F.silu(A)"},
    "softplus": {"gg.nn.softplus(A)": "F.softplus(A)"},
    "log_sigmoid": {"gg.nn.log_sigmoid(A)": "F.logsigmoid(A)"},
    "gelu": {
        "gg.nn.gelu(A)": "F.gelu(A)",
        "gg.nn.gelu(A, approximate=True)": "F.gelu(A, approximate='tanh')",
    },
    "softmax": {
        "gg.nn.softmax(A)": "F.softmax(A, -1)",
        "gg.nn.log_softmax(T, 1)": "F.log_softmax(T, 1)",
    },
    "layer_norm": {
        "gg.nn.layer_norm(A, V, W)": "F.layer_norm(A, (A.shape[1],), V, W)",
        "gg.nn.layer_norm(T, axis=(1, 2))": "F.layer_norm(T, T.shape[1:])",
    },
    "cross_entropy": {
        "gg.nn.cross_entropy(A, gg.nn.softmax(B))": "F.cross_entropy(A, F.softmax(B, -1), reduction='none')",
        "gg.nn.cross_entropy(S, K)": "F.cross_entropy(S, K, reduction='none')",
    },
    "conv": {
        "gg.nn.conv(T, S[:, :, None], padding='VALID', data_format='NCW')": "F.conv1d(T, S[:, :, None])",
    },
    "avg_pool": {
        "gg.nn.avg_pool(T, 1, data_format='NCW')": "F.avg_pool1d(T, 1)",
        "gg.nn.avg_pool(T[None], (1, 2), data_format='NCHW')": "F.avg_pool2d(T[None], (1, 2))",
    },
    "max_pool": {
        "gg.nn.max_pool(T[None], (2, 2), 1, data_format='NCHW')": "F.max_pool2d(T[None], (2, 2), 1)",
    },
    "cummax": {"gg.cummax(A, 1)": "torch.cummax(A, 1)[0]"},
    "cummin": {"gg.cummin(A, 0)": "torch.cummin(A, 0)[0]"},
    "topk": {"gg.topk(A, 1)[0]": "torch.topk(A, 1)[0]"},
    "logsumexp": {"gg.logsumexp(A, 1)": "torch.logsumexp(A, 1)"},
    "scatter_add": {"gg.at[V, K].add(W)": "V.index_add(0, K, W)"},
    "linalg": {
        "gg.linalg.expm(S)": "torch.linalg.matrix_exp(S)",
        "gg.linalg.solve_triangular(S, T[0] + 0 * S[:, :1])": "torch.linalg.solve_triangular(S.triu(), T[0] + 0 * S[:, :1], upper=True)",
        "gg.linalg.lu(S)": "torch.linalg.lu(S)",
        "gg.linalg.cho_solve(gg.linalg.cho_factor(S), V[:, None])": "torch.cholesky_solve(V[:, None], torch.linalg.cholesky(S))",
        "gg.linalg.pinv(A)": "torch.linalg.pinv(A)",
        "gg.linalg.svd(A, full_matrices=False)[1]": "torch.linalg.svd(A, full_matrices=False)[1]",
        "gg.linalg.eigvalsh(S)": "torch.linalg.eigvalsh(S)",
    },
}  # fmt: skip
"""Function -> {our call: torch's}."""
