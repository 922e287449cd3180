"""What to change in a model that no identity heals: the function itself has no slope there."""

from __future__ import annotations

__all__ = ["ADVICE"]

_CHOOSE = "gg.where(ok, f(gg.where(ok, x, 1.0)), 0.0)"
ROOT = (
    "the slope of a root is infinite at 0: add a small number under the root, or select the "
    f"arguments that are safe, {_CHOOSE}"
)
LOGARITHM = (
    "the logarithm of 0 is infinite: keep its argument above 0 (gg.maximum(x, 1e-6)), or use a "
    "function that computes in logarithms (gg.nn.log_softmax, gg.special.logsumexp, "
    "-gg.nn.softplus(-x))"
)
QUOTIENT = (
    "a quotient has no value where the divisor is 0: add a small number to the divisor, or "
    f"select the arguments where it is not 0, {_CHOOSE}"
)
ANGLE = (
    "the slope is infinite at 1 and -1: clip the argument, gg.clip(x, -1 + 1e-6, 1 - 1e-6), or "
    "compute the angle with gg.arctan2"
)
OVERFLOW = (
    "it overflows: subtract the largest argument first, or compute the logarithm of the result "
    "instead"
)
REPEATED = (
    "the vectors have no derivative where values repeat: use a function that does not depend on "
    "their order (gg.linalg.matrix_function), or add distinct small numbers to the diagonal"
)
SINGULAR = (
    "the matrix is singular or not positive definite there: add a small multiple of the "
    "identity, x + 1e-6 * gg.eye(n)"
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
"""Op type -> what to do where it turns finite numbers into NaN or infinity."""
