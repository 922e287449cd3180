"""Loops as functions: scan, map, fori_loop and while_loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, overload

from ...base.errors import DTypeError, ShapeError
from ...base.flags import truth
from ...base.length import Length
from ...base.position import caller, show
from ...base.tree import flatten, paths, unflatten
from ...ir.build import adopted, apply, build, graph_elsewhere
from ...ir.graph import current
from ...ir.node import Tensor
from ...ir.program import Program
from ...ir.typed import Leaf, Nest, X, Y
from ...ir.types import TensorType, compatible, is_negative, tensor_type
from ..base import as_tensor, count, kind_of, whole
from ..documented import documented
from ..elementwise.accumulate import EnsureLike
from ..elementwise.logic import less
from ..shape.joining import concat, stack
from ..sources import identity
from .bodies import (
    BODY_OF,
    BodyGraph,
    BodyScope,
    as_outputs,
    constants_of,
    given_here,
    own_indices,
    traced,
)
from .conditional_loops import While
from .naming import give_names, names_of
from .row_loops import Scan, looped

__all__ = ["fori_loop", "map", "scan", "while_loop"]

SCAN, MAP, FORI, WHILE = "scan()", "map()", "fori_loop()", "while_loop()"
"""What errors call the loops."""
MANY = 1 << 63  # runs, which no int64 counts


class Start(NamedTuple):
    """What a loop begins with.

    what     the function that the user called, "scan()", and where
    tree     the structure of the carry
    tensors  the carry, in the graph of the loop
    counted  whether the carry is (a number that the loop counts, the user's carry)
    """

    what: str
    tree: Any
    tensors: tuple[Tensor, ...]
    counted: bool

    def check_next(self, body: BodyGraph, tree: Any, taken: Sequence[Tensor]) -> list[Tensor]:
        """What a run carries on, as tensors of the body of the types that it took."""
        self._check_structure(tree)
        carries = as_outputs(body, flatten(tree))
        with BodyScope(body):
            return self._all_as_taken(taken, carries)

    def next_here(self, tree: Any, taken: Any) -> Any:
        """What a run carries on where it stands in the graph of the loop, as it takes it."""
        self._check_structure(tree)
        carries = [as_tensor(leaf) for leaf in flatten(tree)]
        return unflatten(self.tree, self._all_as_taken(flatten(taken), carries))

    def _check_structure(self, tree: Any) -> None:
        if any(leaf is None for leaf in flatten(tree)):
            raise ShapeError(
                f"the body of {self.what} returns None as its carry; is a `return` missing?"
            )
        if self._names(tree) != self._names(self.tree):
            now, before = (t[1] if self.counted else t for t in (tree, self.tree))
            raise ShapeError(
                f"the body of {self.what} returns a carry of another structure than it takes: "
                f"{now!r} for {before!r}"
            )

    def _names(self, tree: Any) -> list[str]:
        """What errors call the tensors of a carry."""
        if self.counted:
            return ["i", *paths(tree[1], "init")]
        return list(paths(tree, "init"))

    def _all_as_taken(self, taken: Sequence[Tensor], carries: Sequence[Tensor]) -> list[Tensor]:
        names = self._names(self.tree)
        return [self._as_taken(*row) for row in zip(names, taken, carries, strict=True)]

    def _as_taken(self, name: str, before: Tensor, after: Tensor) -> Tensor:
        if before.dtype is not after.dtype or not compatible(before.shape, after.shape):
            error = DTypeError if before.dtype is not after.dtype else ShapeError
            raise error(
                f"the carry {name} of {self.what} is {before.type!r} and becomes {after.type!r} "
                f"({after.name}, built at {after.where}); a carry keeps shape and dtype: start "
                "with that type, or cast or reshape it in the body"
            )
        if before.type is after.type and before.type.static:
            return after
        message = f"the carry {name} of {self.what} keeps its shape"
        return apply(EnsureLike(message), after, before)


def started(fn: str, init: Any) -> Start:
    """The first carries of a loop that a function of this name makes."""
    what, counted = f"{fn} at {show(caller())}", fn == FORI
    leaves = flatten(init)
    if any(leaf is None for leaf in leaves):
        begin = init[1] if counted else init
        raise DTypeError(f"{what} starts with {begin!r}; a carry is a tensor, not None")
    return Start(what, init, adopted(tuple([as_tensor(leaf) for leaf in leaves])), counted)


def new_body(what: str) -> BodyGraph:
    """A body of the current graph."""
    outer = current().graph
    assert outer is not None
    return BodyGraph(outer, f"{BODY_OF}{what}")


@overload
def scan(
    f: Callable[[Tensor, Tensor], tuple[Tensor, Y]],
    init: Leaf,
    xs: Leaf,
    length: int | Length | None = None,
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[Tensor, Y]: ...
@overload
def scan(
    f: Callable[[Tensor, Any], tuple[Tensor, Y]],
    init: Leaf,
    xs: Nest | None = None,
    length: int | Length | None = None,
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[Tensor, Y]: ...
@overload
def scan(
    f: Callable[[Any, Any], tuple[X, Y]],
    init: Nest,
    xs: Any = None,
    length: int | Length | None = None,
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[X, Y]: ...
@documented(Scan)
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | Length | None = None,
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[Any, Any]:
    """Loop over rows: carry, y = f(carry, x) for each row x of xs.

    The loop is one node. f is called once to build its body, which may read tensors of the
    surrounding graph. Regions, maps and rules in the body apply to every iteration.

    Parameters:
        f: takes (carry, x) and returns (next carry, y), any nestings of tensors; y may be None. The
            next carry has the structure, shapes and dtypes of the carry.
        init: the first carry, any nesting of tensors.
        xs: tensors with the same number of rows, in any nesting; None: no rows, and x is None.
        length: the number of iterations, an int or a length; required without xs, otherwise
            checked.
        reverse: iterate from the last row to the first; each y is stacked at the position of its
            row.
        unroll: the number of iterations in one body; a larger body runs less often.

    Returns: (carry, ys): the last carry, and the structure of y with its rows stacked along axis 0.

    Raises: ShapeError for xs of other lengths, without axes, or no length at all, and for a carry
    that changes structure or shape; DTypeError for one that changes its dtype; StateError for a
    placeholder, variable or assign() in the body; TypeError if f does not return a pair, length or
    unroll is not an int, or reverse is not a bool.

    Source: [Bradbury et al. 2018, JAX, jax.lax.scan].

    >>> x = gg.constant([1.0, 2.0, 3.0])
    >>> total, sums = gg.scan(lambda s, x: (s + x, s + x), 0.0, x)
    >>> gg.evaluate([total, sums, gg.gradients(gg.sum(sums), x)])
    [array(6.), array([1., 3., 6.]), array([3., 2., 1.])]
    """
    if not callable(f):
        raise TypeError(f"scan() takes a function (carry, x) -> (carry, y), got {f!r}")
    names = names_of(f, (init, xs) if xs is not None else (init,))
    return _scan(SCAN, f, init, xs, length, truth("reverse", reverse), unroll, names)


def _scan(
    fn: str,
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | Length | None = None,
    reverse: bool = False,
    unroll: int = 1,
    names: Sequence[str] = (),
) -> tuple[Any, Any]:
    """`scan`, for the function of this name; names: of the leaves of carry and rows."""
    stacks = [] if xs is None else flatten(xs)
    elsewhere = graph_elsewhere([*flatten(init), *stacks])
    if elsewhere is not None:
        with elsewhere.as_default():
            return _scan(fn, f, init, xs, length, reverse, unroll, names)
    start = started(fn, init)
    stacked = adopted(tuple([as_tensor(x) for x in stacks]))
    count = _length(start.what, xs, stacked, length)
    if whole("unroll", unroll) != 1:
        return _unrolled(f, start, xs, stacked, count, reverse, unroll)
    body = new_body(start.what)
    given = given_here(body, [*(t.type for t in start.tensors), *(_row(x) for x in stacked)])
    give_names(given, names)
    c = len(start.tensors)
    carry = unflatten(init, given[:c])
    x = None if xs is None else unflatten(xs, given[c:])
    carried, y = _pair(traced(body, f, f"the body of {fn}", (carry, x), given), start.what)
    after = start.check_next(body, carried, given[:c])
    rows = [] if y is None else as_outputs(body, flatten(y))
    if not after and not rows:
        return init, y
    hidden = int(start.counted)
    made = looped(body, given, after, rows, (*start.tensors, *stacked), count, reverse, hidden)
    ys = None if y is None else unflatten(y, made[c : c + len(rows)])
    return unflatten(init, made[:c]), ys


def _row(x: Tensor) -> TensorType:
    return tensor_type(x.shape[1:], x.dtype)


def _length(what: str, xs: Any, stacked: Sequence[Tensor], length: Any) -> Any:
    """What is said of the number of runs; None where the rows are counted when run."""
    if length is not None:
        length = count("length", length)
        if is_negative(length) or (isinstance(length, int) and length >= MANY):
            raise ShapeError(f"{what} runs at least 0 and less than 2**63 times, got {length}")
    known = {"length": length}
    for name, x in zip(paths(xs, "xs") if stacked else (), stacked, strict=True):
        if not x.ndim:
            raise ShapeError(
                f"{what} goes over rows, and {name} ({x.name}, built at {x.where}) is {x.type!r}"
            )
        known[name] = x.shape[0]
    numbers = {name: n for name, n in known.items() if isinstance(n, int)}
    if len(set(numbers.values())) > 1:
        raise ShapeError(f"{what} needs the same number of rows in every array, got {numbers}")
    if length is None and not stacked:
        raise ShapeError(f"{what} has neither xs nor a length")
    return length


@overload
def map(f: Callable[[Tensor], X], xs: Leaf) -> X: ...
@overload
def map(f: Callable[[Any], X], xs: Nest) -> X: ...
def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """Apply f to each row of xs and stack the results: a loop of independent iterations.

    Parameters:
        f: takes one row (the structure of xs) and returns any nesting of tensors.
        xs: tensors with one number of rows, in any nesting.

    Returns: the structure that f returns, with the rows stacked in front.

    Raises: as gg.scan; ShapeError for an f that returns None.

    Gradient: that of each iteration; gradients of shared tensors are summed.

    Source: [Bradbury et al. 2018, JAX, jax.lax.map].

    >>> rows = gg.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> gg.evaluate(gg.map(lambda row: gg.sum(row), rows))
    array([3., 7.])
    """
    if not callable(f):
        raise TypeError(f"map() takes a function of a row, got {f!r}")
    if xs is None or not flatten(xs):
        raise ShapeError(f"map() at {show(caller())} has no xs to go over")
    names = names_of(f, (xs,))
    return _scan(MAP, lambda _, x: ((), _made(f(x))), (), xs, names=names)[1]


def _made(output: Any) -> Any:
    """What a run of map() made."""
    if output is None:
        raise ShapeError("the function of map() returns None; is a `return` missing?")
    return output


@overload
def fori_loop(lo: Any, hi: Any, f: Callable[[Tensor, Tensor], Leaf], init: Leaf) -> Tensor: ...
@overload
def fori_loop(lo: Any, hi: Any, f: Callable[[Tensor, Any], X], init: Nest) -> X: ...
def fori_loop(lo: Any, hi: Any, f: Callable[[Any, Any], Any], init: Any) -> Any:
    """Counted loop: carry = f(i, carry) for i = lo, lo + 1, ... hi - 1.

    Parameters:
        lo, hi: ints or lengths, or scalar integer tensors if the number of iterations depends on
            values.
        f: takes (i, carry), with i an int64 scalar, and returns the next carry.
        init: the first carry, any nesting of tensors, whose structure, shapes and dtypes stay.

    Returns: the structure of init.

    Raises: as gg.scan; TypeError for bounds that are not integers.

    Gradient: that of the iterations.

    Source: [Bradbury et al. 2018, JAX, jax.lax.fori_loop].

    >>> gg.evaluate(gg.fori_loop(0, 3, lambda i, x: x * 2.0 + i, 1.0))
    array(12.)
    """
    if not callable(f):
        raise TypeError(f"fori_loop() takes a function (i, carry) -> carry, got {f!r}")
    if isinstance(lo, Tensor) or isinstance(hi, Tensor):
        first, last = (_bound(*bound) for bound in (("lo", lo), ("hi", hi)))
        carry = (first, init)
        names = names_of(f, carry)
        return _while_loop(
            FORI,
            lambda c: less(c[0], last),
            lambda c: (c[0] + 1, f(c[0], c[1])),
            carry,
            names=names,
        )[1]
    runs = Length.max(0, count("hi", hi) - count("lo", lo))
    start = as_tensor(lo, "int64")
    names = names_of(f, (start, init))
    return _scan(
        FORI,
        lambda c, _: ((c[0] + 1, f(*c)), None),
        (start, init),
        length=runs,
        names=names,
    )[0][1]


def _bound(name: str, bound: Any) -> Tensor:
    tensor = as_tensor(bound)
    if kind_of(tensor.dtype) not in "iu" or tensor.shape != ():
        raise TypeError(
            f"{name} of fori_loop() is an int or a scalar integer tensor, got {tensor.type!r}"
        )
    return as_tensor(tensor, "int64")


@overload
def while_loop(
    test: Callable[[Tensor], Any],
    body: Callable[[Tensor], Leaf],
    init: Leaf,
    max_trips: int | None = None,
) -> Tensor: ...
@overload
def while_loop(
    test: Callable[[Any], Any],
    body: Callable[[Any], X],
    init: Nest,
    max_trips: int | None = None,
) -> X: ...
@documented(While)
def while_loop(
    test: Callable[[Any], Any],
    body: Callable[[Any], Any],
    init: Any,
    max_trips: int | None = None,
) -> Any:
    """Loop while a condition is true: carry = body(carry) as long as test(carry).

    The loop is one node, whose number of iterations is known only at run time. For the gradient,
    the carry of every iteration is stored.

    Parameters:
        test: takes the carry and returns a scalar bool tensor.
        body: takes the carry and returns the next, of its structure, shapes and dtypes.
        init: the first carry, any nesting of tensors.
        max_trips: the maximum number of iterations, required for the gradient on a backend that
            must know its memory in advance; None: no maximum.

    Returns: the structure of init.

    Raises: DTypeError for a test that is not a bool, or a carry that changes its dtype; ShapeError
    for a test with axes, no carry, or a carry that changes structure or shape; StateError for a
    placeholder, variable or assign() in the loop. A run raises ExecutionError if the test is still
    true after max_trips iterations.

    Source: [Bradbury et al. 2018, JAX, jax.lax.while_loop].

    >>> x = gg.constant(3.0)
    >>> y = gg.while_loop(lambda y: y < 100.0, lambda y: y * x, 1.0)
    >>> gg.evaluate([y, gg.gradients(y, x)])
    [array(243.), array(405.)]
    """
    for what, fn in (("test", test), ("body", body)):
        if not callable(fn):
            raise TypeError(f"the {what} of while_loop() is a function of the carry, got {fn!r}")
    most = None if max_trips is None else whole("max_trips", max_trips)
    if most is not None and not 0 <= most < MANY:
        raise ValueError(f"max_trips is at least 0 and less than 2**63, got {most}")
    return _while_loop(WHILE, test, body, init, most, names_of(body, (init,)))


def _while_loop(
    fn: str,
    test: Callable[[Any], Any],
    body: Callable[[Any], Any],
    init: Any,
    max_trips: int | None = None,
    names: Sequence[str] = (),
) -> Any:
    """`while_loop`, for the function of this name; names: of the leaves of the carry."""
    elsewhere = graph_elsewhere(flatten(init))
    if elsewhere is not None:
        with elsewhere.as_default():
            return _while_loop(fn, test, body, init, max_trips, names)
    start = started(fn, init)
    if not start.tensors:
        raise ShapeError(f"{start.what} has no carry, so its test never changes")
    inside = new_body(start.what)
    given = given_here(inside, [t.type for t in start.tensors])
    give_names(given, names)
    carry = unflatten(init, given)
    asked = traced(inside, test, f"the test of {fn}", (carry,), given)
    if asked is None or isinstance(asked, tuple | list | dict):
        raise DTypeError(f"the test of {start.what} returns a single bool, got {asked!r}")
    (holds,) = as_outputs(inside, [asked])
    if kind_of(holds.dtype) != "b" or holds.ndim:
        raise (DTypeError if kind_of(holds.dtype) != "b" else ShapeError)(
            f"the test of {start.what} is a single bool, got {holds.name}: {holds.type!r} (built "
            f"at {holds.where})"
        )
    next_carry = traced(inside, body, f"the body of {fn}", (carry,), given)
    after = start.check_next(inside, next_carry, given)
    own = own_indices(inside, [holds, *after], given)
    with BodyScope(inside):
        after = [*[index + 1 for index in own], *after]
    given = [*own, *given]
    first = [*[as_tensor(0, "int64") for _ in own], *start.tensors]
    constants = constants_of(inside, [holds, *after], given, whole=True)
    reads = [*given, *constants]
    op = While(
        (Program(reads, [holds]), Program(reads, after)),
        len(given),
        max_trips,
        tuple(range(len(given))),
        show(caller()),
        len(own) + start.counted,
    )
    made = build(op, (*first, *constants.values())).outputs
    return unflatten(init, made[len(own) : len(given)])


def _unrolled(
    f: Callable[[Any, Any], tuple[Any, Any]],
    start: Start,
    xs: Any,
    stacked: Sequence[Tensor],
    length: Any,
    reverse: bool,
    unroll: int,
) -> tuple[Any, Any]:
    """The loop with `unroll` runs in one body; what is left over is built run by run, or is a loop
    where its number is open."""
    if unroll < 1:
        raise ValueError(f"unroll is at least 1, got {unroll}")
    total: Any = length if length is not None else stacked[0].shape[0]
    if total is None:
        raise ShapeError(
            f"{start.what} unrolls a number of runs that depends on values; leave unroll out"
        )
    cut = total - total % unroll

    def run(carry: Any, rows: Sequence[Tensor], count: int) -> tuple[Any, Any]:
        """So many runs, one after the other: the last carry, and what they made, stacked."""
        made: list[Any] = [None] * count
        for at in reversed(range(count)) if reverse else range(count):
            x = None if xs is None else unflatten(xs, [row[at] for row in rows])
            taken = unflatten(carry, [identity(t) for t in flatten(carry)])  # slots, as in a body
            after, made[at] = _pair(f(taken, x), start.what)
            carry = start.next_here(after, carry)
        return carry, _stacked(made)

    def main(carry: Any) -> tuple[Any, Any]:
        blocks = [x[:cut].reshape((cut // unroll, unroll, *x.shape[1:])) for x in stacked]
        carry, ys = scan(
            lambda carry, rows: run(carry, rows, unroll), carry, blocks, cut // unroll, reverse
        )
        merged = [] if ys is None else [y.reshape((cut, *y.shape[2:])) for y in flatten(ys)]
        return carry, None if ys is None else unflatten(ys, merged)

    def rest(carry: Any) -> tuple[Any, Any]:
        rows = [x[cut:] for x in stacked]
        if isinstance(total, int):
            return run(carry, rows, total - cut)
        return scan(f, carry, None if xs is None else unflatten(xs, rows), total - cut, reverse)

    carry = unflatten(start.tree, start.tensors)
    if total == 0:
        return scan(f, carry, xs, total, reverse)
    if cut == 0:
        return rest(carry)
    if cut == total:
        return main(carry)
    first, second = (rest, main) if reverse else (main, rest)
    carry, one = first(carry)
    carry, other = second(carry)
    if one is None or other is None:
        return carry, None
    head, tail = (other, one) if reverse else (one, other)
    joined = [concat(pair) for pair in zip(flatten(head), flatten(tail), strict=True)]
    return carry, unflatten(one, joined)


def _pair(pair: Any, what: str) -> tuple[Any, Any]:
    """What the body of a scan returns; TypeError for anything else."""
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(f"the body of {what} returns (carry, y), got {pair!r}")
    return pair


def _stacked(made: Sequence[Any]) -> Any:
    """The results of runs, in their structure, stacked."""
    if not made or made[0] is None:
        return None
    columns = zip(*(flatten(row) for row in made), strict=True)
    return unflatten(made[0], [stack(list(column)) for column in columns])
