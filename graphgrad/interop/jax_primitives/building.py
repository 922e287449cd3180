"""Equations of JAX as nodes of the current graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from functools import partial
from typing import Any

import jax
import jax.extend.random as jax_random
import numpy as np
from jax.extend import core

from ...base.errors import GraphError
from ...base.length import Length
from ...base.position import Position, show
from ...ir.graph import current
from ...ir.node import Tensor
from ...ir.types import TensorType, as_dtype
from ...ops.base import NO_GRAD, Constant, LengthValue, apply, as_tensor, constant
from ...ops.control import cond, scan, switch, while_loop
from ...ops.foreign.jax_function import symbolic_shapes
from ...ops.shape.reshaping import reshape
from ...ops.sources import identity, undefined_gradient
from ...regions.scopes import override_gradient
from ..opened import clean, gg, placed
from ..reports import Tally
from .named import named_at
from .table import LEFT_OUT, TABLE
from .tracing import (
    CALLS,
    INSTEAD,
    KEYS,
    RULES,
    WHO,
    NoForm,
    is_key,
    is_opened,
    last_reads,
    position_of,
    read_equations,
    traced,
    wide,
)

__all__ = ["Building"]

_JAX: Any = jax
_CORE: Any = core


class Building:
    """Builds equations on tensors of these types.

    avals   what JAX traces with, open lengths as symbols
    tally  what notes what became of them. Then what has no form is noted, too, and no error: zeros
            stand for it
    """

    def __init__(self, types: Sequence[TensorType], tally: Tally | None = None) -> None:
        self.tally = tally
        self._constants: set[Tensor] = set()  # of programs: no argument is among them
        self._line: Position | None = None  # of the equation that is being built
        shapes, self._symbols = symbolic_shapes(types)
        self.avals = [_JAX.ShapeDtypeStruct(s, t.dtype) for s, t in zip(shapes, types, strict=True)]

    def run(self, jaxpr: Any, consts: Sequence[Any], inputs: Sequence[Any]) -> list[Tensor]:
        """The outputs of a program for these tensors."""
        env: dict[Any, Any] = {}
        constants = list(map(_constant, consts))
        self._constants.update(constants)
        env.update(zip(jaxpr.constvars, constants, strict=True))
        env.update(zip(jaxpr.invars, inputs, strict=True))

        def read(atom: Any) -> Any:
            if isinstance(atom, _CORE.Literal):
                return constant(np.asarray(atom.val, atom.aval.dtype))
            return env[atom]

        eqns = read_equations(jaxpr)
        last = last_reads(eqns, jaxpr.outvars)
        i = 0
        while i < len(eqns):
            eqn = eqns[i]
            named = named_at(eqns, i, lambda v, place: last[v] >= place)
            if named is None:
                line = position_of(eqn) or self._line
                xs = [*placed("", line, partial(list, map(read, eqn.invars)))]
                made = self._at(eqn, eqn.primitive.name, partial(self._built, eqn, xs))
            else:
                made = self._at(eqn, named.theirs, partial(named.ours, env[named.variable]))
            i += 1 if named is None else named.length
            env.update(zip(eqns[i - 1].outvars, made, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _at(self, eqn: Any, theirs: str, build: Callable[[], Any]) -> Sequence[Tensor]:
        """What is built, with the scope and the line of an equation."""
        graph, around = current().graph, self._line
        start = len(graph.nodes)
        self._line = position = position_of(eqn) or around

        def attempted() -> Any:
            nonlocal theirs
            try:
                return build()
            except NoForm as error:
                theirs = ""
                return self._refused(eqn, error)

        made = placed(clean(str(eqn.source_info.name_stack)), position, attempted)
        self._line = around
        if self.tally is not None:
            through = theirs in ("", *CALLS, *RULES)
            self.tally.built(theirs, graph.nodes[start:], show(position), through=through)
        return made

    def _refused(self, eqn: Any, error: NoForm) -> list[Tensor]:
        """GraphError; or zeros, where it is noted."""
        tally = self.tally or Tally()
        if self.tally is None or is_opened(eqn):
            tally.refused(error.theirs, show(self._line), error.why)
        types = [self._type_of(v.aval) for v in eqn.outvars]
        if self.tally is None or any(None in shape for shape, _ in types):
            tally.check(WHO, INSTEAD)
        return [gg.zeros(*each) for each in types]

    def _type_of(self, aval: Any) -> tuple[Any, Any]:
        """Shape and dtype of what stands for a value."""
        if is_key(aval.dtype):
            aval = _JAX.eval_shape(_JAX.random.key_data, aval)
        return tuple(map(self._length, aval.shape)), aval.dtype

    def _built(self, eqn: Any, xs: list[Tensor]) -> Any:
        name, params = eqn.primitive.name, eqn.params
        if name in CALLS:
            return self._called(params[CALLS[name]], params.get("name"), xs)
        if name in RULES:
            return self._ruled(eqn, params.get("call_jaxpr", params.get("fun_jaxpr")), xs)
        if name in KEYS:
            return self._keyed(eqn, name, params, xs)
        match name:
            case "cond":
                return self._cond(params["branches"], xs)
            case "while":
                return self._while(params, xs)
            case "dim_as_value":
                return self._size(params["dim"], eqn.outvars[0].aval.dtype)
            case "platform_index":
                return constant(_index_of_cpu(params["platforms"]), "int32")
            case "scan":
                return self._scan(params, xs)
            case "call_hi_primitive":
                return self._ruled(eqn, _expanded(params["_prim"], eqn.invars), xs)
            case "linear_solve" | "custom_linear_solve":
                return self._ruled(eqn, params["jaxprs"].solve, self._solved(params, xs), xs)
        if any(is_key(v.aval.dtype) for v in eqn.invars):
            return self._moved(eqn, xs)
        if name not in TABLE:
            raise NoForm(name, LEFT_OUT.get(name, ""))
        try:
            return TABLE[name](*xs, **self._of_lengths(params))
        except NotImplementedError as error:
            raise NoForm(name, f"with {error}") from error

    def _of_lengths(self, params: dict[str, Any]) -> dict[str, Any]:
        """Parameters with lengths for JAX's symbolic ones."""
        return (
            {key: self._length(value) for key, value in params.items()} if self._symbols else params
        )

    def _length(self, value: Any) -> Any:
        if type(value) in (tuple, list):
            return tuple(map(self._length, value))
        if _JAX.export is not None and _is_symbolic(value):
            length = Length(str(value))
            known = {n: s for n in length.names if (s := self._symbols.get(n)) is not None}
            return length.at(known) if known.keys() == length.names else None
        return value

    def _size(self, dim: Any, dtype: Any) -> Tensor:
        length = self._length(dim)
        if isinstance(length, Length):
            return apply(LengthValue(length, as_dtype(dtype)))
        return constant(int(length), dtype)

    def _called(self, closed: Any, name: Any, xs: Sequence[Tensor]) -> list[Tensor]:
        jaxpr, consts = (closed.jaxpr, closed.consts) if hasattr(closed, "jaxpr") else (closed, ())
        return self.run(jaxpr, consts, xs)

    # --- rules ---

    def _ruled(
        self, eqn: Any, closed: Any, inside: list[Tensor], given: Any = None
    ) -> list[Tensor]:
        """A region whose rule is the transposed derivative of the one equation, by JAX.

        inside  what the program reads that computes the values
        given   what the equation reads, where that is more
        """
        if not any(
            as_dtype(v.aval.dtype).kind in "fc" for v in eqn.outvars if not is_key(v.aval.dtype)
        ):
            return self._called(closed, None, inside)  # nothing that a rule could be of
        n = eqn.params.get("num_consts", 0) if eqn.primitive.name.startswith("custom_vjp") else 0
        inside = [*map(_without_gradient, inside[:n]), *inside[n:]]
        inputs = inside if given is None else given
        places = {t: i for i, t in enumerate(dict.fromkeys(inputs))}
        closed_over = self._constants.union(inside[:n])
        fixed = {i for t, i in places.items() if t in closed_over}
        rule = _Rule(eqn, [places[t] for t in inputs], fixed)
        if self.tally is not None:
            self.tally.rule(rule.__name__, show(self._line))
        with override_gradient(rule, inputs=list(places)) as region:
            outputs = [
                y if y.node.region is region and y not in seen else identity(y)
                for seen, y in _with_those_before(self._called(closed, None, inside))
            ]
            region.declare(outputs=outputs)
        return outputs

    def _solved(self, params: Any, xs: list[Tensor]) -> list[Tensor]:
        """What the solver of a linear system reads: its constants and the right side."""
        lengths = params["const_lengths"]
        before = lengths.matvec + lengths.vecmat
        total = sum(lengths)
        return [*xs[before : before + lengths.solve], *xs[total:]]

    # --- loops and choices ---

    def _cond(self, branches: Sequence[Any], xs: list[Tensor]) -> Any:
        which, *operands = xs
        known = which.node.op.value if isinstance(which.node.op, Constant) else None
        if known is not None and known.size == 1:
            at = min(max(int(known.reshape(-1)[0]), 0), len(branches) - 1)
            return self._called(branches[at], None, operands)

        def taking(branch: Any) -> Callable[[], tuple[Tensor, ...]]:
            return lambda *_: tuple(map(_own, self._called(branch, None, operands)))

        if len(branches) == 2:
            test = which if which.dtype.kind == "b" else which > 0
            return cond(reshape(test, ()), taking(branches[1]), taking(branches[0]))
        return switch(which, [taking(branch) for branch in branches])

    def _while(self, params: Any, xs: list[Tensor]) -> Any:
        n, m = params["cond_nconsts"], params["body_nconsts"]
        of_test, of_body, init = xs[:n], xs[n : n + m], xs[n + m :]

        each = len(params["cond_jaxpr"].out_avals[0].shape)  # axes of a batch, each with its end

        def goes_on(carry: Any) -> Tensor:
            return self._called(params["cond_jaxpr"], None, [*of_test, *carry])[0]

        def test(carry: Any) -> Tensor:
            return gg.any(goes_on(carry)) if each else goes_on(carry)

        def body(carry: Any) -> Any:
            made = self._called(params["body_jaxpr"], None, [*of_body, *carry])
            if not each:
                return tuple(made)
            on = goes_on(carry)
            ones = [(1,) * (y.ndim - each) for y in made]
            pairs = zip(made, carry, ones, strict=True)
            return tuple(gg.where(reshape(on, (*on.shape, *one)), y, x) for y, x, one in pairs)

        return while_loop(test, body, tuple(init)) if init else ()

    def _scan(self, params: Any, xs: list[Tensor]) -> Any:
        n, m = _counts_of_scan(params)
        consts, init, rows = xs[:n], xs[n : n + m], xs[n + m :]

        def run(carry: Any, row: Any) -> Any:
            made = self._called(params["jaxpr"], None, [*consts, *carry, *(row or ())])
            return tuple(made[:m]), tuple(map(_own, made[m:]))

        length = self._length(params["length"])
        last, ys = scan(run, tuple(init), tuple(rows) or None, length, params["reverse"])
        return [*last, *ys]

    # --- keys ---

    def _moved(self, eqn: Any, xs: list[Tensor]) -> Any:
        """Keys that are put elsewhere: their numbers are, and then words by their numbers."""
        name, at = eqn.primitive.name, 0
        if not all(is_key(v.aval.dtype) for v in eqn.outvars):
            raise NoForm(name, "of random keys")
        given, words = [], []
        for x, v in zip(xs, eqn.invars, strict=True):
            shape = v.aval.shape if is_key(v.aval.dtype) else None
            if shape is not None:
                count = int(np.prod(shape))
                words.append(reshape(x, (count, x.shape[-1])))
                x, at = constant(np.arange(at, at + count).reshape(shape), "int64"), at + count
            given.append(x)
        made = TABLE[name](*given, **eqn.params)
        every = gg.concat(words)
        return [
            gg.where(
                gg.expand_dims(y < 0, -1),  # beyond the keys
                constant(np.iinfo("uint32").max, "uint32"),
                gg.take(every, gg.maximum(y, 0), 0),
            )
            for y in (made if isinstance(made, tuple | list) else (made,))
        ]

    def _keyed(self, eqn: Any, name: str, params: Any, xs: list[Tensor]) -> Any:
        if name in ("random_wrap", "random_unwrap", "random_clone"):
            return xs
        if name == "random_bits" and self.tally is not None:
            self.tally.drawn(name, show(self._line))
        key = eqn.invars[0].aval
        impl = params["impl"] if name == "random_seed" else _implementation(key.dtype)
        functions = {
            "random_seed": lambda seed: impl.seed(seed),
            "random_split": lambda data: impl.split(data, params["shape"]),
            "random_fold_in": lambda data, other: impl.fold_in(data, other),
            "random_bits": lambda data: impl.random_bits(
                data, params["bit_width"], params["shape"]
            ),
        }
        fn: Any = functions[name]
        shape = key.shape
        if name == "random_fold_in":
            shape = np.broadcast_shapes(shape, eqn.invars[1].aval.shape)
            xs = [gg.broadcast_to(xs[0], (*shape, xs[0].shape[-1])), gg.broadcast_to(xs[1], shape)]
        for _ in range(len(shape)):
            fn = _JAX.vmap(fn)
        closed = traced(fn, [_JAX.ShapeDtypeStruct(x.shape, x.dtype) for x in xs])
        return Building([]).run(closed.jaxpr, closed.consts, xs)


def _implementation(dtype: Any) -> Any:
    """The functions of a kind of keys."""
    kinds = ("threefry_prng_impl", "rbg_prng_impl", "unsafe_rbg_prng_impl")
    known = {str(getattr(jax_random, kind).tag): getattr(jax_random, kind) for kind in kinds}
    name = str(dtype).removeprefix("key<").removesuffix(">")
    if name not in known:
        raise NoForm(f"random keys of {dtype}")
    return known[name]


def _counts_of_scan(params: Any) -> tuple[int, int]:
    """How many constants and carries a loop has; from JAX 0.12 on their structures say so."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    consts, carry, _ = map(len, params["ft_in"].unpack())
    return consts, carry


def _expanded(primitive: Any, variables: Sequence[Any]) -> Any:
    """What a primitive that has rules of its own computes."""

    def run(*xs: Any) -> Any:
        return _JAX.tree.leaves(primitive.expand(*_JAX.tree.unflatten(primitive.in_tree, xs)))

    return traced(run, [_JAX.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in variables])


def _index_of_cpu(platforms: Any) -> int:
    """Which of the forms for different machines is for CPUs; the last is for all."""
    for i, names in enumerate(platforms):
        if names is None or "cpu" in names:
            return i
    return len(platforms) - 1


def _is_symbolic(value: Any) -> bool:
    return type(value).__name__ == "_DimExpr"


def _with_those_before(ys: Sequence[Tensor]) -> Iterator[tuple[set[Tensor], Tensor]]:
    seen: set[Tensor] = set()
    for y in ys:
        yield seen, y
        seen.add(y)


def _without_gradient(x: Tensor) -> Tensor:
    """What a function closes over, with respect to which its rule does not differentiate."""
    plain = not x.type.differentiable or isinstance(x.node.op, Constant)
    return x if plain else undefined_gradient(x)


def _own(y: Tensor) -> Tensor:
    """A tensor of the body: what is only handed on becomes one."""
    return y if y.node.graph is current().graph else identity(y)


def _constant(value: Any) -> Tensor:
    if isinstance(value, _JAX.core.Tracer):
        raise GraphError(
            f"{WHO}: the function closes over a {value.aval} that JAX traces outside of it: pass "
            "it as an argument"
        )
    if is_key(getattr(value, "dtype", np.dtype("float32"))):
        value = _JAX.random.key_data(value)
    return as_tensor(np.asarray(value))


class _Rule:
    """The transposed derivative of one equation, traced and opened when it is asked for.

    places  which input of the region each input of the equation is
    fixed   the inputs of the region that it is no derivative by: what the function closes over
    """

    def __init__(self, eqn: Any, places: Sequence[int], fixed: Set[int]) -> None:
        self._eqn = eqn
        self.places, self._fixed = places, fixed
        name = eqn.params.get("name") or getattr(eqn.params.get("call_jaxpr"), "name", "")
        debug = getattr(getattr(eqn.params.get("call_jaxpr"), "jaxpr", None), "debug_info", None)
        self.__name__ = str(name or getattr(debug, "func_name", eqn.primitive.name))

    def __repr__(self) -> str:
        return f"<the rule of {self.__name__} in JAX>"

    def __call__(self, site: Any, *dys: Tensor) -> list[Any]:
        eqn, read = self._eqn, []
        for v, place in zip(self._eqn.invars, self.places, strict=True):
            if not isinstance(v, _CORE.Literal):
                read.append((v, site.inputs[place], place not in self._fixed))
        moving, taken = [v for v, _, _ in read], [x for _, x, _ in read]
        by = [i for i, (_, x, moves) in enumerate(read) if moves and x.type.differentiable]
        of = [i for i, y in enumerate(eqn.outvars) if as_dtype(y.aval.dtype).kind in "fc"]

        def pulled(*arrays: Any) -> Any:
            xs, gs = list(arrays[: len(taken)]), arrays[len(taken) :]

            def moved(*given: Any) -> Any:
                values = [
                    _JAX.random.wrap_key_data(x, impl=str(_implementation(v.aval.dtype).name))
                    if is_key(v.aval.dtype)
                    else x
                    for x, v in zip(xs, moving, strict=True)
                ]
                for i, value in zip(by, given, strict=True):
                    values[i] = value
                ys = _evaluated(eqn, values)
                return tuple(ys[i] for i in of)

            return _JAX.vjp(moved, *[xs[i] for i in by])[1](tuple(gs))

        seeds = [as_tensor(dys[i]) for i in of]
        building = Building([t.type for t in (*taken, *seeds)])
        with wide([t.type for t in (*taken, *seeds)]):
            closed = traced(pulled, building.avals)
            made = building.run(closed.jaxpr, closed.consts, [*taken, *seeds])
        gradients = dict(zip([taken[i] for i in by], [None] * len(by), strict=True))
        for i, dx in zip(by, made, strict=True):
            before = gradients[taken[i]]
            gradients[taken[i]] = dx if before is None else before + dx
        return [gradients.get(x, NO_GRAD) for x in site.inputs]


def _evaluated(eqn: Any, values: Sequence[Any]) -> Sequence[Any]:
    """What an equation makes of what JAX traces, literals apart."""
    rest = iter(values)
    read = [v.val if isinstance(v, _CORE.Literal) else next(rest) for v in eqn.invars]
    bound = eqn.primitive.get_bind_params(eqn.params)
    functions, params = bound if isinstance(bound, tuple) else ((), bound)
    made = eqn.primitive.bind(*functions, *read, **params)
    return made if eqn.primitive.multiple_results else [made]
