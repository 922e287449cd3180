"""Calls of the host from a program that JAX compiled.

XLA makes them in threads of its own, where the 64-bit types that were enabled for the call are off:
numbers of 64 bits would be cut to 32 on the way there, and refused on the way back. So they go both
ways as words of 32 bits. JAX knows no derivative of a call and says so; it would take that of the
words for zero, so an empty part of each array goes along as it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from sys import modules
from threading import get_ident
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...base.locks import acting_for
from ...ir.node import Node
from ..results import add_note

__all__ = ["AT", "CALLED", "HOST", "HostCalls", "note_call", "on_host"]

AT: ContextVar[Node | None] = ContextVar("at", default=None)
"""The node that is being traced: what its call of the host raises is noted with it."""

_struct: Any = jax.ShapeDtypeStruct


class HostCalls:
    """The calls of the host in one program.

    raised  what the last of them raised: XLA says it in an error of its own, as text that it cuts
    """

    def __init__(self) -> None:
        self.raised: deque[Exception] = deque(maxlen=4)
        self._waiting: list[int] = []

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """This thread waits for the program."""
        me = get_ident()
        self._waiting.append(me)
        try:
            yield
        finally:
            self._waiting.remove(me)

    def acting(self) -> AbstractContextManager[None]:
        """A thread of XLA works for the one that waits, where that is known: so what waits for
        itself is an error, as on every backend, and does not hang."""
        waiting = self._waiting[:]
        return acting_for(waiting[0]) if len(set(waiting)) == 1 else nullcontext()

    def begin_anew(self) -> list[Exception]:
        """What was raised, and no more of it.

        JAX keeps calls in order by what each returns; of one that failed all that come later would
        say so. It has no public way to forget it.
        """
        raised = [*self.raised]
        self.raised.clear()
        returned = getattr(modules.get("jax._src.dispatch"), "runtime_tokens", None)
        if raised and returned is not None:
            returned.clear()
        return raised


HOST: ContextVar[HostCalls | None] = ContextVar("host", default=None)
"""Those of the program that is being traced."""

CALLED: ContextVar[list[Node | None] | None] = ContextVar("called", default=None)
"""Where nodes that call the host are noted, of a program that is traced for a place without it."""


def note_call() -> None:
    """Say that the node that is traced calls the host."""
    called = CALLED.get()
    if called is not None:
        called.append(AT.get())


def on_host(
    callback: Callable[..., Any],
    fn: Callable[..., Any],
    types: Sequence[jax.ShapeDtypeStruct],
    arrays: Sequence[Any],
    **how: Any,
) -> list[Any]:
    """What fn makes of the arrays, one array for each of the types.

    callback: jax.pure_callback or io_callback, with its arguments.
    """
    taken, node, host = [np.dtype(x.dtype) for x in arrays], AT.get(), HOST.get()
    note_call()

    def run(*given: Any) -> tuple[Any, ...]:
        pairs = zip(given, taken, strict=False)  # behind them come the empty parts
        whole = [_whole(np.asarray(x), dtype) for x, dtype in pairs]
        try:
            with nullcontext() if host is None else host.acting():
                outputs = fn(*whole)
        except Exception as error:
            if node is not None:
                add_note(error, node, whole)
            if host is not None:
                host.raised.append(error)
            raise
        results = outputs if isinstance(outputs, tuple) else (outputs,)
        return tuple(_words(np.asarray(y)) for y in results)

    made = tuple(_struct((*t.shape, n), np.uint32) if (n := _count(t.dtype)) else t for t in types)
    here = [jnp.asarray(x) for x in arrays]
    real = [x for x in here if jnp.issubdtype(x.dtype, jnp.inexact)]
    empty = [x.reshape(-1)[:0].real.astype("float32") for x in real]
    outputs = callback(run, made, *map(_words_there, here), *empty, **how)
    return [_whole_there(y, np.dtype(t.dtype)) for y, t in zip(outputs, types, strict=True)]


def _count(dtype: Any) -> int:
    """How many words a number takes; 0: it goes as it is."""
    wide = np.dtype(dtype).name in ("float64", "int64", "uint64", "complex128")
    return np.dtype(dtype).itemsize // 4 if wide else 0


def _words(x: np.ndarray) -> np.ndarray:
    if not _count(x.dtype):
        return x
    return np.asarray(x, order="C").reshape((*x.shape, 1)).view(np.uint32)


def _whole(words: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    if not _count(dtype):
        return words
    return np.asarray(words, order="C").view(dtype).reshape(words.shape[:-1])


def _words_there(x: Any) -> Any:
    """`_words` in the compiled program."""
    if not _count(x.dtype):
        return x
    if x.dtype == np.complex128:
        parts = jnp.stack([x.real, x.imag], -1)
        return jax.lax.bitcast_convert_type(parts, jnp.uint32).reshape((*x.shape, 4))
    return jax.lax.bitcast_convert_type(x, jnp.uint32)


def _whole_there(words: Any, dtype: np.dtype[Any]) -> Any:
    if not _count(dtype):
        return words
    if dtype == np.complex128:
        pairs = words.reshape((*words.shape[:-1], 2, 2))
        parts = jax.lax.bitcast_convert_type(pairs, jnp.float64)
        return jax.lax.complex(parts[..., 0], parts[..., 1])
    return jax.lax.bitcast_convert_type(words, dtype)
