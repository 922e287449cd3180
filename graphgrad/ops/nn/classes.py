"""One-hot encoding of class labels."""

from __future__ import annotations

from ...base.errors import ShapeError
from ...ir.types import is_negative, lengths
from ..base import (
    NO_GRAD,
    ZERO,
    Any,
    Cast,
    Constant,
    DType,
    DTypeError,
    Gradients,
    Node,
    Op,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    apply,
    as_dtype,
    as_tensor,
    count,
    kind_of,
    np,
    tensor_type,
)
from ..documented import documented
from ..elementwise.logic import EQUAL
from ..making import Making
from ..shape.reshaping import ExpandDims, normal_axis

__all__ = ["one_hot"]


class OneHot(Op):
    """y = 1 at the place along a new axis that each label names, else 0.

    Gradient: none, indices are integers.
    """

    length: Any
    axis: int
    dtype: DType
    differentiable = False
    flop_free = True
    axis_attrs = ("axis",)

    def infer(self, labels: TensorType) -> Types:
        check_labels(labels)
        shape = (*labels.shape[: self.axis], self.length, *labels.shape[self.axis :])
        return (tensor_type(shape, self.dtype),)

    def kernel(self, xp: Any, labels: Any) -> Any:
        return _one_hot(xp, labels, self.length, self.axis, self.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (NO_GRAD,)

    def decompose(self, make: Making) -> Tensor | None:
        return make(Cast(self.dtype), hits_of(make, make.inputs[0], self.length, self.axis))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(3, 1, as_dtype("float64")), [np.array([0, 2])]
        yield cls(3, 0, as_dtype("float32")), [np.array([[0, 2], [1, -1]])]


class OneHotLike(Op):
    """OneHot of the length and dtype of the second input's axis.

    Gradient: none of the labels; zero for the second input.
    """

    axis: int
    shape_only = (1,)
    flop_free = True
    axis_attrs = ("axis",)

    def infer(self, labels: TensorType, like: TensorType) -> Types:
        check_labels(labels)
        return (like,)

    def kernel(self, xp: Any, labels: Any, like: Any) -> Any:
        return _one_hot(xp, labels, like.shape[self.axis], self.axis, like.dtype)

    def to_onnx(self, to: Any, labels: Any, like: Any) -> Any:
        count = to.Squeeze(to.length(like, self.axis), [0])
        places = to.Range(np.int64(0), count, np.int64(1), shape=(None,))
        others = list(range(1, like.rank - self.axis))
        classes = to.Unsqueeze(to.cast(labels, "int64"), [self.axis])
        hits = to.Equal(classes, to.Unsqueeze(places, others) if others else places)
        return to.cast(hits, like.dtype)

    def static(self, inputs: Types) -> Op:
        return OneHot(lengths(inputs[1])[self.axis], self.axis, inputs[1].dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return NO_GRAD, ZERO

    def decompose(self, make: Making) -> Tensor | None:
        labels, like = make.inputs
        hits = hits_of(make, labels, lengths(like.type)[self.axis], self.axis)
        return make(Cast(like.dtype), hits)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(1), [np.array([0, 2]), rng.normal(size=(2, 3))]


def _one_hot(xp: Any, labels: Any, length: int, axis: int, dtype: DType) -> Any:
    places = xp.reshape(xp.arange(length), (length,) + (1,) * (labels.ndim - axis))
    return xp.astype(xp.expand_dims(labels, axis=axis) == places, dtype)


def hits_of(make: Making, labels: Tensor, length: int, axis: int) -> Tensor:
    """Where along a new axis the place is that a label names."""
    after = len(labels.shape) - axis
    if length - 1 > np.iinfo(labels.dtype).max:  # places that labels of this dtype cannot name
        labels = make(Cast(as_dtype("int64")), labels)
    places = np.arange(length, dtype=labels.dtype).reshape((length,) + (1,) * after)
    return make(EQUAL, make(ExpandDims((axis,)), labels), make(Constant(places)))


def check_labels(labels: TensorType) -> None:
    if kind_of(labels.dtype) not in "iu":
        raise DTypeError(f"class labels are integers, got {labels!r}")


@documented(OneHot)
def one_hot(indices: TensorLike, depth: Any, dtype: Any = "float64", axis: int = -1) -> Tensor:
    """1 at the index along a new axis, 0 elsewhere.

    Parameters:
        indices: integers of any shape; the row of an index outside of 0 to depth - 1 is all 0.
        depth: the length of the new axis, an int >= 0 or a length.
        dtype: that of the result.
        axis: where the new axis stands in the result.

    Returns: shape of indices with the new axis.

    Raises: DTypeError for indices that are not integers; ShapeError if there is no such place, or
        depth < 0.

    >>> gg.evaluate(gg.one_hot([0, 2], 3))
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """
    x = as_tensor(indices)
    place = normal_axis(axis, x.ndim + 1)
    length = count("depth", depth)
    if is_negative(length):
        raise ShapeError(f"one_hot takes a depth >= 0, got {length}")
    return apply(OneHot(length, place, as_dtype(dtype)), x)
