"""Factors of matrices by loops of ordinary ops, in any namespace that has `fori_loop`: for where
there is no LAPACK. The matrices are real, in float64, and of known lengths; the axes before are
those of a stack, of any lengths.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "cholesky",
    "eigh",
    "expm",
    "lu",
    "permutation",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
]

SWEEPS = 12
"""Of rotations over all pairs: each squares what is left beside the diagonal."""


def _rows(n: int) -> Any:
    return np.arange(n)


def _places(xp: Any, places: Any, like: Any) -> Any:
    """Places, repeated to the shape of an array."""
    return places + xp.zeros_like(like).astype(np.int64)


def lu(xp: Any, x: Any) -> tuple[Any, Any]:
    """Both factors in one matrix, and pivots (int32), as LAPACK's getrf [Golub and Van Loan 2013,
    sec. 3.4.4]."""
    m, n = x.shape[-2:]
    steps = min(m, n)
    row, column = _rows(m), _rows(n)

    def step(k: Any, state: Any) -> Any:
        a, pivots = state
        here = xp.take(a, k, axis=-1)
        place = xp.argmax(xp.where(row >= k, xp.abs(here), -1.0), axis=-1)
        at = place[..., None]
        order = xp.where(row == k, at, xp.where(row == at, k, row))
        a = xp.take_along_axis(a, _places(xp, order[..., None], a), axis=-2)
        here, across = xp.take(a, k, axis=-1), xp.take(a, k, axis=-2)
        pivot = xp.take(here, k, axis=-1)[..., None]
        factors = xp.where(row > k, here / xp.where(pivot == 0, 1.0, pivot), 0.0)
        rest = xp.where(column > k, across, 0.0)
        a = a - factors[..., :, None] * rest[..., None, :]
        below = (row[:, None] > k) & (column == k)
        return xp.where(below, factors[..., :, None], a), xp.where(_rows(steps) == k, at, pivots)

    none = xp.zeros_like(x[..., :1, 0]).astype(np.int64) + np.zeros(steps, np.int64)
    packed, pivots = xp.fori_loop(0, steps, step, (x, none))
    return packed, pivots.astype(np.int32)


def permutation(xp: Any, pivots: Any, count: int) -> Any:
    """Where the rows come from that exchanges with the pivots make."""
    row = _rows(count)

    def step(k: Any, order: Any) -> Any:
        at = xp.take(pivots, k, axis=-1).astype(np.int64)[..., None]
        first = xp.take(order, k, axis=-1)[..., None]
        second = xp.take_along_axis(order, at, axis=-1)
        return xp.where(row == k, second, xp.where(row == at, first, order))

    start = xp.zeros_like(pivots[..., :1]).astype(np.int64) + row
    return xp.fori_loop(0, pivots.shape[-1], step, start)


def solve_triangular(xp: Any, x: Any, y: Any, lower: bool, transpose: bool, unit: bool) -> Any:
    """x**-1 @ y by substitution, row by row."""
    if transpose:
        x, lower = x.mT, not lower
    n = x.shape[-1]
    row = _rows(n)

    def step(i: Any, z: Any) -> Any:
        k = i if lower else n - 1 - i
        factors = xp.take(x, k, axis=-2)
        others = xp.where((row < k) if lower else (row > k), factors, 0.0)
        left = xp.take(y, k, axis=-2) - xp.matmul(others[..., None, :], z)[..., 0, :]
        if not unit:
            left = left / xp.take(factors, k, axis=-1)[..., None]
        return xp.where((row == k)[:, None], left[..., None, :], z)

    return xp.fori_loop(0, n, step, xp.zeros_like(y) + xp.zeros_like(x[..., :1, :1]))


def solve(xp: Any, x: Any, y: Any) -> Any:
    """x**-1 @ y, by its factors."""
    factors, pivots = lu(xp, x)
    order = permutation(xp, pivots, x.shape[-1])
    y = y + xp.zeros_like(x[..., :1, :1])
    y = xp.take_along_axis(y, _places(xp, order[..., None], y), axis=-2)
    z = solve_triangular(xp, factors, y, True, False, True)
    return solve_triangular(xp, factors, z, False, False, False)


def slogdet(xp: Any, x: Any) -> tuple[Any, Any, Any]:
    """The sign of the determinant, the logarithm of its size, and itself."""
    n = x.shape[-1]
    factors, pivots = lu(xp, x)
    on = xp.diagonal(factors, axis1=-2, axis2=-1)
    swaps = xp.sum((pivots != _rows(n)).astype(np.int64), axis=-1)
    turn = 1.0 - 2.0 * (swaps % 2).astype(np.float64)
    sign = turn * xp.prod(xp.sign(on), axis=-1)
    return sign, xp.sum(xp.log(xp.abs(on)), axis=-1), turn * xp.prod(on, axis=-1)


def cholesky(xp: Any, x: Any) -> Any:
    """The lower triangle, column by column; NaN where x is not positive definite."""
    n = x.shape[-1]
    row = _rows(n)

    def step(k: Any, y: Any) -> Any:
        across = xp.take(y, k, axis=-2)[..., None]
        left = xp.take(x, k, axis=-1) - xp.matmul(y, across)[..., 0]
        column = xp.where(row >= k, left / xp.sqrt(xp.take(left, k, axis=-1)[..., None]), 0.0)
        return xp.where(row == k, column[..., :, None], y)

    return xp.fori_loop(0, n, step, xp.zeros_like(x))


def qr(xp: Any, x: Any, complete: bool) -> tuple[Any, Any]:
    """By reflections, with LAPACK's signs [Golub and Van Loan 2013, sec. 5.2.2]."""
    m, n = x.shape[-2:]
    row = _rows(m)

    def step(k: Any, state: Any) -> Any:
        q, r = state
        here = xp.where(row >= k, xp.take(r, k, axis=-1), 0.0)
        first = xp.take(here, k, axis=-1)[..., None]
        tail = xp.sum(xp.where(row > k, here * here, 0.0), axis=-1, keepdims=True)
        end = -xp.copysign(xp.sqrt(first * first + tail), first)
        v = xp.where(row == k, here - end, here)
        size = xp.sum(v * v, axis=-1, keepdims=True)
        turns = tail > 0
        v = xp.where(turns, v * xp.sqrt(2.0 / xp.where(turns, size, 1.0)), 0.0)
        across, down = v[..., None, :], v[..., :, None]
        return q - xp.matmul(xp.matmul(q, down), across), r - down * xp.matmul(across, r)

    start = xp.zeros_like(x[..., :1, :1]) + np.eye(m), x
    q, r = xp.fori_loop(0, min(m - 1, n), step, start) if min(m - 1, n) > 0 else start
    k = m if complete else min(m, n)
    return q[..., :, :k], xp.triu(r[..., :k, :])


def expm(xp: Any, x: Any) -> Any:
    """1 + x + x @ x / 2 + ..., of x / 2**s, squared s times [Higham 2008, sec. 10.3]."""
    size = xp.max(xp.sum(xp.abs(x), axis=-2))
    count = xp.ceil(xp.log2(xp.maximum(size, 0.25) * 4.0))
    scaled = x * xp.exp2(-count)
    one = np.eye(x.shape[-1])
    y = xp.zeros_like(x) + one
    for k in range(14, 0, -1):
        y = one + xp.matmul(scaled, y) / float(k)
    return xp.fori_loop(0, count.astype(np.int64), lambda _, y: xp.matmul(y, y), y)


def _partners(n: int) -> Any:
    """(rounds, n): who is rotated with whom, so that all pairs meet once; 0 with itself if n is
    odd, as in a tournament."""
    even = n + n % 2
    seats = list(range(even))
    rounds = []
    for _ in range(even - 1):
        partner = np.arange(n)
        for a, b in zip(seats[: even // 2], seats[: even // 2 - 1 : -1], strict=True):
            if a < n and b < n:
                partner[a], partner[b] = b, a
        rounds.append(partner)
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return np.array(rounds)


def eigh(xp: Any, x: Any) -> tuple[Any, Any]:
    """Eigenvalues, rising, and vectors, by Jacobi's rotations of disjoint pairs at a time
    [Golub and Van Loan 2013, sec. 8.5.5]. The signs of vectors are not LAPACK's."""
    n = x.shape[-1]
    lower = xp.tril(x)
    a = lower + xp.tril(x, -1).mT
    one = xp.zeros_like(a) + np.eye(n)
    if n > 1:
        partners = _partners(n)
        table = xp.asarray(partners)

        def step(i: Any, state: Any) -> Any:
            a, v = state
            partner = xp.take(table, i % len(partners), axis=0)
            turn = _rotation(xp, a, partner, n)
            return xp.matmul(xp.matmul(turn.mT, a), turn), xp.matmul(v, turn)

        a, one = xp.fori_loop(0, SWEEPS * len(partners), step, (a, one))
    w = xp.diagonal(a, axis1=-2, axis2=-1)
    order = xp.argsort(w, axis=-1)
    places = _places(xp, order[..., None, :], one)
    return xp.take_along_axis(w, order, axis=-1), xp.take_along_axis(one, places, axis=-1)


def _rotation(xp: Any, a: Any, partner: Any, n: int) -> Any:
    """The orthogonal matrix that takes away what lies between partners."""
    row = _rows(n)
    hit = partner[:, None] == row
    own = xp.diagonal(a, axis1=-2, axis2=-1)
    between = xp.sum(xp.where(hit, a, 0.0), axis=-1)
    other = xp.sum(xp.where(hit, own[..., None, :], 0.0), axis=-1)
    idle = (partner == row) | (between == 0)
    tau = (other - own) / (2.0 * xp.where(idle, 1.0, between))
    tangent = xp.copysign(1.0, tau) / (xp.abs(tau) + xp.sqrt(1.0 + tau * tau))
    tangent = xp.where(tau == 0, xp.where(row < partner, 1.0, -1.0), tangent)
    tangent = xp.where(idle, 0.0, tangent)
    cosine = 1.0 / xp.sqrt(1.0 + tangent * tangent)
    sine = (tangent * cosine)[..., :, None]
    return xp.where(np.eye(n, dtype=bool), cosine[..., :, None], xp.where(hit, sine, 0.0))


def svd(xp: Any, x: Any, full: bool) -> tuple[Any, Any, Any]:
    """Singular factors: the right ones by eigenvectors of x.T @ x, the left ones by what x makes of
    them. What is less than 1e-8 of the greatest value is known to about that."""
    m, n = x.shape[-2:]
    if m < n:
        u, s, vh = svd(xp, x.mT, full)
        return vh.mT, s, u.mT
    largest = xp.max(xp.abs(x), axis=(-2, -1), keepdims=True)
    scale = xp.where(largest == 0, 1.0, largest)
    _, v = eigh(xp, xp.matmul((x / scale).mT, x / scale))
    v = xp.flip(v, axis=-1)
    made = xp.matmul(x, v)
    size = xp.sqrt(xp.sum((made / scale) ** 2, axis=-2)) * scale[..., 0]
    order = xp.argsort(-size, axis=-1)
    s = xp.take_along_axis(size, order, axis=-1)
    places = order[..., None, :]
    v = xp.take_along_axis(v, _places(xp, places, v), axis=-1)
    made = xp.take_along_axis(made, _places(xp, places, made), axis=-1)
    q, r = qr(xp, made, complete=full)
    signs = xp.where(xp.diagonal(r, axis1=-2, axis2=-1) < 0, -1.0, 1.0)
    if full and m > n:
        more = xp.zeros_like(x[..., 0, :1]) + np.ones(m - n)
        signs = xp.concatenate([signs, more], axis=-1)
    return q * signs[..., None, :], s, v.mT
