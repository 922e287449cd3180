"""What to change in a model where no identity heals it: the function itself has no slope there."""

from __future__ import annotations

__all__ = ["ADVICE"]

_CHOOSE = "gg.where(ok, f(gg.where(ok, x, 1.0)), 0.0)"
ROOT = (
    "the slope of a root is infinite at 0: add a small number below the root, or choose where "
    f"there is one, {_CHOOSE}"
)
LOGARITHM = (
    "a logarithm has no value at 0: keep its argument above 0 (gg.maximum(x, 1e-6)), or compute "
    "the logarithm itself (gg.nn.log_softmax, gg.special.logsumexp, -gg.nn.softplus(-x))"
)
QUOTIENT = (
    "a quotient has no value where what it is divided by is 0: add a small number to that, or "
    f"choose where it is not 0, {_CHOOSE}"
)
ANGLE = (
    "the slope is infinite at 1 and -1: clip to less, gg.clip(x, -1 + 1e-6, 1 - 1e-6), or take "
    "the angle by gg.arctan2"
)
OVERFLOW = (
    "it overflows: subtract the greatest argument before, or compute the logarithm of what is "
    "wanted instead"
)
REPEATED = (
    "its vectors have no derivative where values are equal: use what does not depend on their "
    "order (gg.linalg.matrix_function), or add distinct small numbers to the diagonal"
)
SINGULAR = (
    "the matrix has no inverse, or no root, there: add a small multiple of the identity, "
    "x + 1e-6 * gg.eye(n)"
)

ADVICE: dict[str, str] = {
    **dict.fromkeys(("Sqrt", "Cbrt", "EuclideanNorm", "Hypot", "Power"), ROOT),
    **dict.fromkeys(("Log", "Log2", "Log10", "Log1p", "XLogY", "Entropy"), LOGARITHM),
    **dict.fromkeys(("Divide", "Reciprocal", "Remainder"), QUOTIENT),
    **dict.fromkeys(("Acos", "Asin", "Atanh", "ErfInv"), ANGLE),
    **dict.fromkeys(("Exp", "Exp2", "Expm1", "Sinh", "Cosh"), OVERFLOW),
    **dict.fromkeys(("Eigh", "Eig", "Svd"), REPEATED),
    **dict.fromkeys(("Inverse", "Solve", "Cholesky", "SLogDet", "Det", "Qr"), SINGULAR),
}
"""Op type -> what to do where it makes NaN or infinity of finite numbers."""
