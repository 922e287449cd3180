"""Constants, placeholders and variables, and identities with a special gradient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..base.errors import GradientError, ShapeError, StateError
from ..base.flags import truth, truth_if_given
from ..base.kinds import can_cast, is_inexact
from ..base.length import Length
from ..base.solving import told_names
from ..ir.context import bodies_around
from ..ir.graph import current
from ..ir.types import as_shape, check_unmasked
from .base import (
    NO_GRAD,
    ZERO,
    Any,
    Array,
    Derivative,
    DType,
    Gradients,
    Memory,
    Node,
    Onnx,
    Op,
    Samples,
    Shape,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    apply,
    as_dtype,
    as_tensor,
    build,
    cast,
    is_zero,
    np,
    tensor_type,
)
from .documented import documented

__all__ = [
    "assign",
    "identity",
    "placeholder",
    "stop_gradient",
    "undefined_gradient",
    "variable",
    "zero_gradient",
]


class Placeholder(Op):
    """A value given at run time."""

    shape: Shape
    dtype: DType
    source = True
    pure = False
    flop_free = True
    revision = 2  # 1 had strings for named lengths

    def infer(self) -> Types:
        return (tensor_type(self.shape, self.dtype),)

    @classmethod
    def from_revision(cls, revision: int, attrs: dict[str, Any]) -> Op:
        return cls(as_shape(attrs["shape"]), attrs["dtype"])


def placeholder(shape: Any, dtype: Any = "float64", name: str | None = None) -> Tensor:
    """A value given at run time.

    Parameters:
        shape: an int, or a tuple of ints, lengths (`gg.Length`), str (the name of a length, equal
            wherever it stands, or arithmetic such as "2*N"), and None (a length of a name of its
            own, `x.0`).
        dtype: what arrays given for it have, or are cast to by NumPy's same-kind casting.
        name: the node's name, by which it can be fed.

    Returns: a tensor of this type.

    Raises: ShapeError for an invalid shape, or where it does not determine a name, as N in "N//2";
    DTypeError for a non-numeric dtype.

    >>> x = gg.placeholder(("N", 2), "float32", name="x")
    >>> gg.evaluate(gg.sum(x, axis=1), {x: np.ones((3, 2), "float32")})
    array([2., 2., 2.], dtype=float32)
    """
    lengths = as_shape(shape)
    _check_told(lengths)
    return placeholder_of(tensor_type(lengths, dtype), name)


def placeholder_of(t: TensorType, name: str | None = None) -> Tensor:
    """A placeholder of the type of a tensor, whose lengths the graph may not tell."""
    node = build(Placeholder(t.shape, t.dtype), (), name)
    if None in t.shape:
        _name_lengths(node)
    return node.outputs[0]


def _check_told(shape: Shape) -> None:
    """ShapeError for a length whose names do not follow from it and from placeholders before."""
    names = {name for d in shape if isinstance(d, Length) for name in d.names}
    if names <= told_names(shape):
        return
    graphs = bodies_around(current().graph)
    sources = [n for g in graphs for n in g.nodes if isinstance(n.op, Placeholder)]
    dims = [d for n in sources for d in n.outputs[0].shape]
    if untold := names - told_names([*dims, *shape]):
        raise ShapeError(
            f"a placeholder of shape {shape}: {', '.join(sorted(untold))} cannot be determined "
            "from it. Build a placeholder that has it as a length first, or give the length its "
            "own name"
        )


def _name_lengths(node: Node) -> None:
    """Give each length of a placeholder of which nothing is known a name of its own: `x.0`."""
    op: Any = node.op
    shape = [Length(f"{node.name}.{i}") if d is None else d for i, d in enumerate(op.shape)]
    node.op = op.replace(shape=tuple(shape))
    node.outputs = (Tensor(node, 0, node.op.infer()[0]),)


class Variable(Op, interned=False):
    """A value that lives in a State and outlasts a run.

    trainable  it is meant to be trained
    slot       it holds what an optimiser remembers
    """

    initial: Array
    trainable: bool = True
    slot: bool = False
    source = True
    pure = False
    flop_free = True

    def infer(self) -> Types:
        return (tensor_type(self.initial.shape, self.initial.dtype),)

    def __repr__(self) -> str:
        return f"Variable({tensor_type(self.initial.shape, self.initial.dtype)!r})"


def variable(
    initial: Any,
    dtype: Any = None,
    name: str | None = None,
    *,
    trainable: bool | None = None,
    slot: bool = False,
) -> Tensor:
    """State held outside the graph, with this initial value (copied).

    Its value is in `graph.state`, or in the State or Session that a run uses; write it with
    `state[v] = value`, `gg.assign`, or the `updates` of `gg.compile`.

    Parameters:
        initial: a number, an array, nested lists of numbers.
        dtype: the dtype to cast it to; None: its own.
        name: the node's name, by which `graph.variables`, states and files know it.
        trainable: whether `graph.variables.trainable` has it, which changes nothing else; None: if
            it is floating or complex, and no slot.
        slot: it holds what an optimiser remembers; `graph.variables.slots` has it.

    Returns: a tensor of initial's shape: the value when a run begins.

    Raises: StateError if initial is a tensor; DTypeError for non-numeric input; TypeError
    for a mark that is not a bool.

    >>> v = gg.variable(1.0)
    >>> v.graph.state[v] = 2.0
    >>> gg.evaluate(v)
    array(2.)
    """
    if isinstance(initial, Tensor):
        raise StateError("the initial value of a variable is an array, not a tensor")
    check_unmasked(initial)
    array = np.array(initial)
    array = array.astype(as_dtype(array.dtype if dtype is None else dtype))
    array.flags.writeable = False
    trainable, slot = truth_if_given("trainable", trainable), truth("slot", slot)
    if trainable is None:
        trainable = is_inexact(array.dtype) and not slot
    return build(Variable(array, trainable, slot), (), name).outputs[0]


class Assign(Op):
    """The new value of a variable. The write happens when the whole run has succeeded.

    Gradient: that of the value, dy; none for the others.

    Inputs: the variable, the value, and what else is computed in the run; output: the value.
    """

    pure = False
    memory = Memory(view=True)
    derivative = Derivative(linear_zero=False)
    linear = (1,)

    def infer(self, variable: TensorType, value: TensorType, *beside: TensorType) -> Types:
        return (variable,)

    def kernel(self, xp: Any, variable: Any, value: Any, *beside: Any) -> Any:
        return value

    def to_onnx(self, to: Any, variable: Any, value: Any, *beside: Any) -> Any:
        return to.Identity(value)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return NO_GRAD, dy, *[NO_GRAD] * (len(node.inputs) - 2)


def assign(variable: Tensor, value: Any, name: str | None = None) -> Tensor:
    """Write value to the variable when the run that fetches this tensor has succeeded.

    Every read within the run sees the value from before it.

    Parameters:
        variable: what gg.variable returned.
        value: same shape, cast to the variable's dtype where NumPy calls that a same-kind cast.
        name: the node's name.

    Returns: the new value, of the variable's shape and dtype.

    Raises: StateError if the first is not a variable, or value does not fit it.

    >>> v = gg.variable(1.0)
    >>> gg.evaluate([gg.assign(v, v + 1.0), v])
    [array(2.), array(1.)]
    >>> gg.evaluate(v)
    array(2.)
    """
    return _assigned(variable, value, (), name)


def _assigned(variable: Tensor, value: Any, beside: Sequence[Tensor], name: str | None) -> Tensor:
    """The new value of a variable, where what stands beside it is computed."""
    if not isinstance(variable, Tensor) or variable.node.type != "Variable":
        raise StateError(f"assign() writes a variable, got {variable!r}")
    new = as_tensor(value)
    check_update(variable, new)
    return build(Assign(), (variable, cast(new, variable.dtype), *beside), name).outputs[0]


def assign_together(updates: Mapping[Tensor, Tensor]) -> Tensor:
    """The new value of the last variable; the run that fetches it writes all of them."""
    *others, (variable, value) = updates.items()
    return _assigned(variable, value, [assign(v, new) for v, new in others], None)


def check_update(variable: Tensor, new: Tensor) -> None:
    """StateError unless new can be the variable's next value."""
    fits = can_cast(new.dtype, variable.dtype, "same_kind")
    if new.shape != variable.shape or not fits:
        wanted = variable.dtype.name
        hint = (
            ".\n"
            f"{new.dtype.name} is a different kind of dtype from {wanted}: write gg.cast(value, "
            f"{wanted!r}) if losing information is intended."
        )
        raise StateError(
            f"{variable.name} is {variable.type!r} (built at {variable.where}); it cannot be "
            f"updated with {new.name}, which is {new.type!r} (built at {new.where})"
            f"{'' if fits else hint}"
        )


class Identity(Op):
    """y = x. Gradient: dx = dy.

    Parameters: x: any shape and dtype.

    Returns: same shape and dtype as x.

    Raises: DTypeError for non-numeric input.
    """

    memory = Memory(view=True)
    onnx = Onnx("Identity")
    linear = "joint"
    derivative = Derivative(relevance="moved")

    def infer(self, x: TensorType) -> Types:
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        return x

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.Identity(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy,)

    def batch(self, batch: Any) -> Any:
        return batch.build(self, *batch.inputs)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [rng.normal(size=(2, 3))]
        yield cls(), [rng.normal(size=())]


@documented(Identity)
def identity(x: TensorLike, name: str | None = None) -> Tensor:
    """y = x as a node of its own, which an override can be put on.

    Parameters:
        x: any shape and dtype.
        name: the node's name.

    >>> gg.evaluate(gg.identity([1.0, 2.0]))
    array([1., 2.])
    """
    return build(Identity(), (as_tensor(x),), name).outputs[0]


class StopGradient(Identity):
    """y = x; x is disconnected: nothing flows. Gradient: none."""

    derivative = Derivative(linear_zero=False, withholds=True, relevance=None)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (NO_GRAD,)


def apart(tensors: Sequence[Any]) -> list[Any]:
    """The tensors, all distinct: a repeated one is read through an Identity of its own.

    What is None or a structural zero stays as it is.
    """
    seen: set[Tensor] = set()
    distinct = []
    for t in tensors:
        distinct.append(apply(Identity(), t) if t in seen else t)
        if t is not None and not is_zero(t):
            seen.add(t)
    return distinct


@documented(StopGradient)
def stop_gradient(x: TensorLike) -> Tensor:
    """y = x without a gradient: if ys depend on x only through it, the gradient with respect to x
    is None.

    >>> x = gg.constant(3.0)
    >>> gg.evaluate(gg.gradients(x * gg.stop_gradient(x), x))
    array(3.)
    """
    return apply(StopGradient(), as_tensor(x))


class ZeroGradient(Identity):
    """y = x. Gradient: dx = 0, not None."""

    derivative = Derivative(withholds=True, relevance=None)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (ZERO,)


@documented(ZeroGradient)
def zero_gradient(x: TensorLike) -> Tensor:
    """y = x, with a gradient of zero; unlike stop_gradient, x stays connected.

    >>> x = gg.constant(3.0)
    >>> gg.evaluate(gg.gradients(gg.zero_gradient(x), x))
    array(0.)
    """
    return apply(ZeroGradient(), as_tensor(x))


class UndefinedGradient(Identity):
    """y = x. Gradient: undefined: asking for it is an error."""

    derivative = Derivative(linear_zero=False, relevance=None)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        raise GradientError(
            f"the gradient through undefined_gradient() built at {node.where} is undefined, and "
            "it is needed here"
        )

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        return iter(())


class RuleInput(Identity):
    """y = x.

    Gradient: dx = dy: a dy that was given to a rule which is not to be differentiated again.

    message  what RuleOutput says, which takes its place where forward mode transposes the rule
    """

    message: str

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls("once"), [rng.normal(size=(2, 3))]


class RuleOutput(UndefinedGradient):
    """y = x: a dx of a rule which is not to be differentiated again.

    Gradient: undefined: asking for it is an error.

    message  what the error says
    """

    message: str
    derivative = Derivative(relevance="moved")

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        raise GradientError(self.message)


@documented(UndefinedGradient)
def undefined_gradient(x: TensorLike) -> Tensor:
    """y = x; an error if a gradient is ever needed through it.

    Raises: GradientError, with the line of this call, where a gradient has to flow through it;
    DTypeError for non-numeric input.

    >>> gg.evaluate(gg.undefined_gradient([1.0, 2.0]))
    array([1., 2.])
    """
    return apply(UndefinedGradient(), as_tensor(x))
