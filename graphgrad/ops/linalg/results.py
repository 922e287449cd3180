"""Results of several tensors with the names that NumPy gives them."""

from __future__ import annotations

from typing import NamedTuple

from ..base import Tensor

__all__ = ["EigResult", "EighResult", "QRResult", "SVDResult", "SlogdetResult"]


class EigResult(NamedTuple):
    """What eig gives.

    >>> gg.linalg.eig(np.eye(2)).eigenvalues.shape
    (2,)
    """

    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    """What eigh gives.

    >>> gg.linalg.eigh(np.eye(2)).eigenvectors.shape
    (2, 2)
    """

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """What qr gives.

    >>> gg.linalg.qr(np.eye(2)).R.shape
    (2, 2)
    """

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """What slogdet gives.

    >>> gg.linalg.slogdet(np.eye(2)).logabsdet.shape
    ()
    """

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """What svd gives.

    >>> gg.linalg.svd(np.eye(2)).S.shape
    (2,)
    """

    U: Tensor
    S: Tensor
    Vh: Tensor
