"""What need not be in a loop leaves it.

- What depends on nothing but constants of the loop is computed before it, once.
- A constant w of a product with w^T is turned before it, once.
- x_t @ w of rows that are there before the loop is one product before it.
- A row that is v_t @ w, and nothing else reads it, is one product behind the loop, of the rows v_t.
- Rows that are there before the loop do not pass through it.
- A carry that only adds up x_t^T @ y_t is one product behind it: [x_1; x_2; ...]^T [y_1; y_2; ...].
- A carry that only adds rows v_t to zeros at places i_t is one addition of all rows behind it.

These change last bits, as the products of `shared_products` and `summed_products` do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...ir.node import Node, Tensor
from ...ir.program import Program, derive
from ...ops.contract.products import MATMUL, MatMul
from ...ops.control import Scan
from ...ops.elementwise.accumulate import AddN
from ...ops.elementwise.arithmetic import Add
from ...ops.identities.sequencing import After
from ...ops.shape.indexing import ScatterAdd
from ...ops.shape.reshaping import Transpose
from ...ops.sources import Placeholder
from ..build import beside, reshaped, total
from ..facts import ints, is_number, nbytes, uniform_value
from ..room import Room
from .matrices import MOST_BYTES, is_plain


def leave_loops(program: Program, fired: Counter[str], room: Room) -> Program:
    """The program with loops that compute no more than they have to.

    Not where something is computed again to save memory: what leaves is kept in rows.
    """
    if any(_saves_memory(p) for p in (program, *_bodies(program))):
        return program

    def visit(node: Node) -> tuple[Tensor, ...] | None:
        if type(node.op) is not Scan or node.controls or not _known(node):
            return None
        turned = _with_turned(node, node.op, fired)
        left = _Leaving(turned, turned.op, fired, room).outputs()  # type: ignore[arg-type]
        return turned.outputs if left is None and turned is not node else left

    return program.rebuild(visit)


def _with_turned(node: Node, op: Scan, fired: Counter[str]) -> Node:
    """The loop whose constants are turned as its products read them."""
    (body,) = op.programs
    end = op.carries + op.slices
    constants = dict(zip(body.inputs[end:], node.inputs[end:], strict=True))
    turned: dict[Tensor, Tensor] = {}

    def visit(inner: Node) -> tuple[Tensor, ...] | None:
        if not is_plain(inner) or inner.inputs[1] not in constants:
            return None
        x, w = inner.inputs
        product = inner.op
        assert isinstance(product, MatMul)
        if not product.transpose_b:
            return None
        if w not in turned:
            turned[w] = beside(inner, Placeholder(w.shape[::-1], w.dtype))
        return derive(inner, MATMUL[product.transpose_a, False], (x, turned[w])).outputs

    after = body.rebuild(visit)
    if not turned:
        return node
    fired["left_loops"] += len(turned)
    program = Program((*body.inputs, *turned.values()), after.outputs)
    given = [beside(node, Transpose((1, 0)), constants[w]) for w in turned]
    return derive(node, op.replace(programs=(program,)), (*node.inputs, *given))


def _bodies(program: Program) -> list[Program]:
    return [node.op.programs[0] for node in program.nodes if isinstance(node.op, Scan)]


def _saves_memory(program: Program) -> bool:
    return any(type(op) is After for op in program.ops)


def _known(node: Node) -> bool:
    """Whether all lengths are, and there are runs."""
    op = node.op
    assert isinstance(op, Scan)
    runs = op.runs_of([t.type for t in node.inputs])
    known = all(t.type.static for t in (*node.inputs, *op.programs[0].inputs))
    return known and isinstance(runs, int) and runs > 0


class _Leaving:
    """One loop.

    body      its program, and its inputs in `given`
    runs      how many there are
    constant  tensor of the body -> what it is around it, the same for all runs
    stacked   tensor of the body -> its rows, which are there before the loop
    left      nodes that have left
    rows      what the new loop makes in rows
    room      bytes that all rows may take; `most`: those of a run in this loop
    """

    def __init__(self, node: Node, op: Scan, fired: Counter[str], room: Room) -> None:
        self.node, self.op, self.fired, self.room = node, op, fired, room
        (self.body,) = op.programs
        runs = op.runs_of([t.type for t in node.inputs])
        assert isinstance(runs, int)
        self.runs = runs
        self.given = set(self.body.inputs)
        pairs = list(zip(self.body.inputs, node.inputs, strict=True))
        end = op.carries + op.slices
        self.constant = dict(pairs[end:])
        self.stacked = dict(pairs[op.carries : end])
        self.left: set[Node] = set()
        self.rows: list[Tensor] = []
        self.most = MOST_BYTES // self.runs

    def outputs(self) -> tuple[Tensor, ...] | None:
        """What stands for the outputs of the node; None where nothing leaves."""
        for inner in self.body.nodes:
            if inner.op.pure and not inner.controls:
                self._before(inner)
        reads = Counter(t for n in self.body.nodes if n not in self.left for t in n.inputs)
        reads.update(self.body.outputs)
        c = self.op.carries
        rows = dict(enumerate(self.body.outputs[c:], c))
        there = {j: self.stacked[t] for j, t in rows.items() if t in self.stacked}
        sums = {i: f for i in range(c) if (f := self._summed(i, reads))}
        last = {j: n for j in rows if j not in there and (n := self._row(j, reads))}
        left = len(self.left) + len(there) + len(last)
        if not (left or sums):
            return None
        self.fired += Counter(summed_runs=len(sums), left_loops=left)
        return self._rebuilt(sums, last, there)

    # --- before ---------------------------------------------------------------------------------

    def _before(self, inner: Node) -> None:
        """Let a node leave, if what it reads is there before the loop."""
        constant = [t for t in inner.inputs if t in self.constant]
        others = [t for t in inner.inputs if t not in self.constant]
        fixed = all(not t.node.inputs and t not in self.given for t in others)
        if constant and fixed and (inner.op.elementwise or is_plain(inner)):
            made = derive(inner, inner.op, tuple([self.constant.get(t, t) for t in inner.inputs]))
            self.constant[inner.outputs[0]] = made.outputs[0]
            self.left.add(inner)
        elif is_plain(inner) and self._by_rows(inner) and self._has_room([inner.outputs[0]]):
            x, w = inner.inputs
            self.stacked[inner.outputs[0]] = self._product(inner, self.stacked[x], self.constant[w])
            self.left.add(inner)

    def _by_rows(self, inner: Node) -> bool:
        """Whether a product is of rows that are there with what is the same for all."""
        x, w = inner.inputs
        op = inner.op
        assert isinstance(op, MatMul)
        return x in self.stacked and w in self.constant and not op.transpose_a

    def _product(self, inner: Node, rows: Tensor, w: Tensor) -> Tensor:
        """The products of all runs, as rows."""
        whole = beside(inner, inner.op, self._flat(inner, rows), w)
        return reshaped(inner, whole, (self.runs, *ints(inner.outputs[0].shape)))

    def _flat(self, inner: Node, rows: Tensor) -> Tensor:
        """The matrices of all runs, one below the other."""
        count, height, width = ints(rows.shape)
        return reshaped(inner, rows, (count * height, width))

    # --- behind ---------------------------------------------------------------------------------

    def _summed(self, i: int, reads: Counter[Tensor]) -> list[Node]:
        """What each run adds to a carry, if all of it can be added behind the loop; else []."""
        carry, after = self.body.inputs[i], self.body.outputs[i]
        if i in self.op.history or reads[carry] != 1:
            return []
        terms = self._terms(after, reads)
        added = [t.node for t in terms if t is not carry]
        fits = all(t is carry or self._adds_up(t, after, reads) for t in terms)
        if not fits or not added or len(added) == len(terms):
            return []
        return added if self._take([t for n in added for t in _of_a_run(n)]) else []

    def _terms(self, whole: Tensor, reads: Counter[Tensor]) -> list[Tensor]:
        """What a sum is made of, which nobody reads on the way."""
        terms, summands = [whole], list[Tensor]()
        while terms:
            t = terms.pop()
            inner = not (t in self.given or t.node.controls or reads[t] != 1)
            if inner and type(t.node.op) in (Add, AddN) and t.node not in self.left:
                terms += reversed(t.node.inputs)
            else:
                summands.append(t)
        return summands

    def _adds_up(self, t: Tensor, whole: Tensor, reads: Counter[Tensor]) -> bool:
        """Whether a term can be one for all runs: a product, or an addition to rows of zeros."""
        if t in self.given or reads[t] != 1 or t.node in self.left or t.type is not whole.type:
            return False
        op = t.node.op
        if isinstance(op, ScatterAdd):
            return op.axis == 0 and is_number(uniform_value(t.node.inputs[0]), 0.0)
        if not is_plain(t.node):
            return False
        assert isinstance(op, MatMul)
        return op.transpose_a and not op.transpose_b

    def _row(self, j: int, reads: Counter[Tensor]) -> Node | None:
        """The product that a row is, if nothing else is made of it in the loop."""
        t = self.body.outputs[j]
        if reads[t] != 1 or t in self.given or not is_plain(t.node):
            return None
        x, w = t.node.inputs
        op = t.node.op
        assert isinstance(op, MatMul)
        if op.transpose_a or w not in self.constant:
            return None
        if x not in {*self.rows, *self.stacked} and nbytes(x.type) > 2 * nbytes(t.type):
            return None
        return t.node if self._take([x]) else None

    def _take(self, wanted: Sequence[Tensor]) -> bool:
        """Make rows of tensors, if there is room for them."""
        if any(t in self.constant for t in wanted):
            return False
        more = [t for t in dict.fromkeys(wanted) if t not in self.stacked]
        kept = set(self.rows)
        more = [t for t in more if t not in kept]
        if not self._has_room(more):
            return False
        self.rows += more
        return True

    def _has_room(self, rows: Sequence[Tensor]) -> bool:
        """Whether there is room for these rows, which is taken then."""
        size = sum(nbytes(t.type) for t in rows)
        if size > self.most or not self.room.take(self.runs * size):
            return False
        self.most -= size
        return True

    # --- the new loop ---------------------------------------------------------------------------

    def _rebuilt(
        self, sums: dict[int, list[Node]], last: dict[int, Node], there: dict[int, Tensor]
    ) -> tuple[Tensor, ...]:
        op, body, c = self.op, self.body, self.op.carries
        kept = [i for i in range(c) if i not in sums]
        rows = [j for j in range(c, len(body.outputs)) if j not in last and j not in there]
        made = [body.outputs[j] for j in rows]
        more = [t for t in self.rows if t not in set(made)]
        outputs = [*(body.outputs[i] for i in kept), *made, *more]
        slices, constants = self._read(outputs)
        inputs = [*(body.inputs[i] for i in kept), *slices, *constants]
        new = op.replace(
            programs=(Program(inputs, outputs),),
            carries=len(kept),
            slices=len(slices),
            length=self.runs,
            history=tuple([kept.index(i) for i in op.history]),
        )
        given = [*(self.node.inputs[i] for i in kept), *slices.values(), *constants.values()]
        loop_outputs = derive(self.node, new, tuple(given)).outputs
        stands = there | dict(zip((*kept, *rows), loop_outputs, strict=False))
        stacks = self.stacked | dict(zip((*made, *more), loop_outputs[len(kept) :], strict=False))
        for j, inner in last.items():
            x, w = inner.inputs
            stands[j] = self._product(inner, stacks[x], self.constant[w])
        for i, added in sums.items():
            first, products = self.node.inputs[i], list[Tensor]()
            for inner in added:
                of_all = [stacks[t] for t in _of_a_run(inner)]
                if isinstance(inner.op, ScatterAdd):
                    first = beside(inner, inner.op, first, *of_all)
                    continue
                x, y = (self._flat(inner, rows) for rows in of_all)
                products.append(beside(inner, MATMUL[True, False], x, y))
            stands[i] = total(body.outputs[i].node, [first, *products])
        tail = loop_outputs[len(outputs) :]
        return (*(stands[k] for k in range(len(body.outputs))), *tail)

    def _read(self, outputs: Sequence[Tensor]) -> tuple[dict[Tensor, Tensor], dict[Tensor, Tensor]]:
        """The rows and the constants that the new loop reads."""
        inputs = [*self.body.inputs, *self.stacked, *self.constant]
        nodes = Program(inputs, outputs).nodes
        read = {t for n in nodes for t in n.inputs}.union(outputs)
        slices = {t: x for t, x in self.stacked.items() if t in read}
        return slices, {t: x for t, x in self.constant.items() if t in read}


def _of_a_run(added: Node) -> tuple[Tensor, ...]:
    """What a run gives for what is added behind the loop: factors, or places and rows."""
    return added.inputs[1:] if isinstance(added.op, ScatterAdd) else added.inputs
