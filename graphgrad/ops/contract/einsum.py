"""Einstein summation."""

from __future__ import annotations

import string
from math import prod
from typing import NamedTuple

from ...base.errors import ShapeError
from ...ir.types import Dim, broadcast_dims, elements, lengths
from ..base import (
    NO_GRAD,
    Any,
    DTypeError,
    Gradients,
    Memory,
    Node,
    Onnx,
    Op,
    Samples,
    Tensor,
    TensorType,
    Types,
    apply,
    np,
    promoted,
    tensor_type,
    wants,
)
from ..batching import Batch, Outputs
from ..create.diagonal import diagonal
from ..documented import documented
from ..elementwise.accumulate import EnsureLike
from ..shape.reshaping import Squeeze, broadcast_like, expand_dims, permute_dims

__all__ = ["einsum"]


class Einsum(Op):
    """z = sum of products, by Einstein's convention.

    Gradient: of an operand, the einsum of dz and the others with its term as the result. What
        only that term has was summed, so its gradient is repeated along it.

    equation: such as "ab,bc->ac", without spaces or ellipses, no letter twice in one term, letters
    in order of first use (so that equal contractions are equal ops). Lengths of one letter agree
    or are 1.
    """

    equation: str
    broadcasts = True
    memory = Memory(view=True)
    onnx = Onnx("Einsum", equation="equation")
    linear = "each"

    def infer(self, *types: TensorType) -> Types:
        terms, out = einsum_terms(self.equation)
        lengths: dict[str, Dim] = {}
        if len(terms) != len(types) or any(t.dtype is not types[0].dtype for t in types):
            raise DTypeError(f"{self!r} takes {len(terms)} operands of one dtype, got {types}")
        for term, t in zip(terms, types, strict=True):
            if len(term) != len(t.shape):
                raise ShapeError(f"einsum: the term {term!r} has {len(term)} axes, {t!r} has not")
            for letter, d in zip(term, t.shape, strict=True):
                lengths[letter] = self._merged(lengths[letter], d) if letter in lengths else d
        return (tensor_type(tuple([lengths[letter] for letter in out]), types[0].dtype),)

    def _merged(self, a: Dim, b: Dim) -> Dim:
        try:
            return broadcast_dims(a, b)
        except ShapeError as error:
            raise ShapeError(f"einsum {self.equation!r}: {error}") from None

    def kernel(self, xp: Any, *xs: Any) -> Any:
        return xp.einsum(self.equation, *xs, optimize=len(xs) > 1)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        return tuple([self._grad(node, i, dz) for i in range(len(node.inputs))])

    def _grad(self, node: Node, i: int, dz: Tensor) -> Any:
        terms, out = einsum_terms(self.equation)
        x, term = node.inputs[i], terms[i]
        if not wants(x):
            return NO_GRAD
        others = [t for j, t in enumerate(terms) if j != i]
        tensors = [t for j, t in enumerate(node.inputs) if j != i]
        letters = out + "".join(others)
        kept = "".join([letter for letter in term if letter in letters])
        dx = contract(",".join([out, *others]) + "->" + kept, dz, *tensors)
        lost = tuple([axis for axis, letter in enumerate(term) if letter not in letters])
        return broadcast_like(expand_dims(dx, lost), x) if lost else dx

    def batch(self, batch: Batch) -> Outputs | None:
        """The batch axis as one more letter, if one is left."""
        terms, out = einsum_terms(self.equation)
        letter = next((c for c in string.ascii_letters if c not in self.equation), None)
        if letter is None:
            return None
        left = [letter * flag + term for term, flag in zip(terms, batch.flags, strict=True)]
        return (contract(f"{','.join(left)}->{letter}{out}", *batch.inputs),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One for each factor of each product; none where elements only move."""
        terms, _ = einsum_terms(self.equation)
        known: dict[str, int] = {}
        for term, t in zip(terms, inputs, strict=True):
            for letter, d in zip(term, lengths(t), strict=True):
                known[letter] = max(known.get(letter, 1), d)
        moves = len(terms) == 1 and elements(inputs[0]) == elements(outputs[0])
        return 0 if moves else len(terms) * prod(known.values())

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        lengths = {"a": 2, "b": 3, "c": 2, "d": 2}
        for equation in [
            "ab,bc->ac",
            "abc,abd->acd",
            "ab->ba",
            "ab->a",
            "ab->",
            "ab,c->c",
            "a,a->a",
            "a,b->ab",
            ",a->a",
            "ab,bc,cd->da",
        ]:
            shapes = [[lengths[letter] for letter in t] for t in einsum_terms(equation)[0]]
            yield cls(equation), [rng.normal(size=s) for s in shapes]
        yield cls("ab,bc->ac"), [rng.normal(size=s).astype("float32") for s in [(2, 3), (3, 1)]]
        yield cls("ab,bc->ac"), [rng.normal(size=s) for s in [(2, 0), (0, 3)]]


def einsum_terms(equation: str) -> tuple[list[str], str]:
    """The terms of the operands, and that of the result."""
    left, _, out = equation.partition("->")
    return left.split(","), out


class Contraction(NamedTuple):
    """What a matrix product does with the letters of z = a sum of products of x and y.

    stack    of x, y and z, in the order of z: one product for each
    rows     of x and z, in the order of z
    columns  of y and z, in the order of z
    inner    of x and y, in the order of x: summed by the product
    alone    of x alone, and of y alone: summed before
    """

    stack: str
    rows: str
    columns: str
    inner: str
    alone: tuple[str, str]


def contraction(x: str, y: str, z: str) -> Contraction:
    """The letters of two operands and their result by what a matrix product does with them."""

    def those(letters: str, *, in_x: bool, in_y: bool) -> str:
        return "".join([c for c in letters if (c in x) == in_x and (c in y) == in_y])

    stack = those(z, in_x=True, in_y=True)
    rows, columns = those(z, in_x=True, in_y=False), those(z, in_x=False, in_y=True)
    lost = "".join([c for c in x + y if c not in z])
    inner = "".join([c for c in x if c in y and c not in z])
    alone = those(lost, in_x=True, in_y=False), those(lost, in_x=False, in_y=True)
    return Contraction(stack, rows, columns, inner, alone)


def renamed(equation: str) -> str:
    """An equation with its letters renamed in order of first use."""
    names: dict[str, str] = {}
    for letter in equation:
        if letter.isalpha():
            names.setdefault(letter, string.ascii_letters[len(names)])
    return "".join([names.get(c, c) for c in equation])


def contract(equation: str, *xs: Tensor) -> Tensor:
    """Einsum with its letters renamed in order of first use; x itself where nothing is to do."""
    equation = renamed(equation)
    if len(xs) == 1:
        term, out = equation.split("->")
        if term == out:
            return xs[0]
    return apply(Einsum(equation), *xs)


@documented(Einsum)
def einsum(subscripts: Any, /, *operands: Any, optimize: Any = None) -> Tensor:
    """Sums of products by Einstein's convention, as np.einsum: "ij,jk->ik", "...i,i", "ii->i".

    A letter twice in one term is its diagonal; a missing "->" means the letters that occur once, in
    alphabetical order; "..." stands for further axes, which broadcast. In place of one string,
    lists of numbers below 52 (and ...) may follow each operand, and one the last for the result:
    einsum(x, [0, 1], y, [1, 2], [0, 2]).

    Parameters:
        subscripts: a term for each operand and one for the result; or the first operand, with
            lists.
        *operands: shapes that fit their terms; dtypes promoted as NumPy 2 does.
        optimize: what NumPy takes (a bool, "greedy", "optimal" or a path); it changes nothing, for
            the order of the products is chosen when the program is compiled.

    Returns: the axes of the result's term, the promoted dtype.

    Raises: ShapeError for subscripts that do not fit; ValueError for another optimize.

    Source: numpy.einsum.

    >>> gg.evaluate(gg.einsum("ij,jk->ik", [[1, 2], [3, 4]], [[0, 1], [1, 0]]))
    array([[2, 1],
           [4, 3]])
    """
    _check_optimize(optimize)
    if not isinstance(subscripts, str):
        subscripts, operands = _from_lists((subscripts, *operands))
    if not operands:
        raise ShapeError(f"einsum {subscripts!r} takes at least one operand")
    xs = list(promoted(*operands))
    terms, out = _parsed(subscripts, xs)
    for i, x in enumerate(xs):
        xs[i], terms[i] = _without_repeats(x, terms[i])
    for i in range(len(xs)):
        xs[i], terms[i] = _without_ones(i, xs, terms)
    return contract(",".join(terms) + "->" + out, *xs)


def _check_optimize(optimize: Any) -> None:
    """ValueError for what np.einsum would not take."""
    how = optimize[0] if isinstance(optimize, list | tuple) and optimize else optimize
    if not (how is None or isinstance(how, bool) or how in ("greedy", "optimal", "einsum_path")):
        raise ValueError(
            f"einsum: optimize is a bool, 'greedy', 'optimal' or a path, got {optimize!r}"
        )


def _from_lists(given: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Subscripts and operands from operands that are each followed by a list."""
    count = len(given) // 2
    terms = [_letters(axes) for axes in given[1 : 2 * count : 2]]
    out = [_letters(given[-1])] if len(given) % 2 else []
    return "->".join([",".join(terms), *out]), given[: 2 * count : 2]


def _letters(axes: Any) -> str:
    """A list of numbers as letters, in the order of the numbers."""
    if not isinstance(axes, list | tuple):
        raise ShapeError(f"einsum: a list of axes follows each operand, got {axes!r}")
    known = sorted(string.ascii_letters)
    for axis in axes:
        number = isinstance(axis, int | np.integer) and not isinstance(axis, bool)
        if axis is not Ellipsis and not (number and 0 <= axis < len(known)):
            raise ShapeError(f"einsum: an axis is a number below {len(known)} or ..., got {axis!r}")
    return "".join(["..." if axis is Ellipsis else known[axis] for axis in axes])


def _parsed(subscripts: str, xs: list[Tensor]) -> tuple[list[str], str]:
    """The terms and the output, with letters for the ellipses."""
    left, arrow, out = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(xs):
        raise ShapeError(f"einsum {subscripts!r} has {len(terms)} terms for {len(xs)} operands")
    free = [c for c in reversed(string.ascii_letters) if c not in subscripts]
    extra = [x.ndim - len(t) + 3 if "..." in t else 0 for t, x in zip(terms, xs, strict=True)]
    rest = "".join(free[: max(extra)][::-1])
    terms = [t.replace("...", rest[len(rest) - n :]) for t, n in zip(terms, extra, strict=True)]
    if not arrow:
        every = "".join(terms)
        out = rest + "".join(sorted(c for c in set(every) - set(rest) if every.count(c) == 1))
    out = out.replace("...", rest)
    for term, n, x in zip(terms, extra, xs, strict=True):
        if n < 0 or len(term) != x.ndim or not (term.isalpha() or not term):
            raise ShapeError(f"einsum {subscripts!r}: a term does not fit the operand {x.type!r}")
    if len(set(out)) != len(out) or not set(out) <= set("".join(terms)):
        raise ShapeError(f"einsum {subscripts!r}: the output takes each letter once, from a term")
    return terms, out


def _without_repeats(x: Tensor, term: str) -> tuple[Tensor, str]:
    """The diagonal along every letter that a term has twice; it becomes the last letter."""
    while len(set(term)) != len(term):
        letter = next(c for c in term if term.count(c) > 1)
        first = term.index(letter)
        second = term.index(letter, first + 1)
        x = diagonal(_square(x, letter, first, second), 0, first, second)
        term = "".join([c for i, c in enumerate(term) if i not in (first, second)]) + letter
    return x, term


def _square(x: Tensor, letter: str, first: int, second: int) -> Tensor:
    """x, whose lengths along two axes agree; checked at run time where they are not known to."""
    shape = list(x.shape)
    a, b = shape[first], shape[second]
    if isinstance(a, int) and isinstance(b, int) and a != b:
        raise ShapeError(
            f"einsum: a letter stands for one length, {letter!r} for {a} and {b} in {x.type!r}"
        )
    if a is not None and a == b:
        return x
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    message = f"einsum: {x.name} (built at {x.where}), of which {letter!r} names two axes,"
    return apply(EnsureLike(message), x, permute_dims(x, tuple(order)))


def _without_ones(i: int, xs: list[Tensor], terms: list[str]) -> tuple[Tensor, str]:
    """An operand without its axes of length 1 that another operand has longer."""
    gone = tuple(
        axis
        for axis, letter in enumerate(terms[i])
        if xs[i].shape[axis] == 1
        and any(
            letter in t and x.shape[t.index(letter)] != 1
            for j, (t, x) in enumerate(zip(terms, xs, strict=True))
            if j != i
        )
    )
    if not gone:
        return xs[i], terms[i]
    term = "".join([c for axis, c in enumerate(terms[i]) if axis not in gone])
    return apply(Squeeze(gone), xs[i]), term
