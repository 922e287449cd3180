"""Columns: built and differentiated in other threads, tasks and contexts."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any

import graphgrad as gg

from .overrides import Override
from .transforms import (
    Pairs,
    World,
    X,
    first,
    known,
    pairs,
    plainly,
    second,
    transparent,
    world,
)


def build(row: Override) -> World:
    with gg.Graph():
        return world(row)


def ask(w: World) -> list[Any]:
    with w.x.graph:
        return plainly(second(w), {w.x: X})


def in_tasks(row: Override) -> Pairs:
    """Built in one task, differentiated in another."""

    async def run() -> list[Any]:
        w = await asyncio.create_task(as_task(build, row))
        return await asyncio.create_task(as_task(ask, w))

    return pairs(asyncio.run(run()), known(row, second))


async def as_task(what: Callable[[Any], Any], given: Any) -> Any:
    await asyncio.sleep(0)
    return what(given)


def in_turns(row: Override) -> Pairs:
    """Tasks whose blocks are open at once, one of them within a region."""

    async def alone() -> list[Any]:
        with gg.Graph():
            await asyncio.sleep(0)
            w = world(row)
            await asyncio.sleep(0)
            return plainly(first(w), {w.x: X})

    async def within() -> list[Any]:
        with gg.Graph(), gg.override_gradient(transparent):
            await asyncio.sleep(0)
            w = world(row, x=gg.placeholder((3,)))
            await asyncio.sleep(0)
            return plainly(first(w), {w.x: X})

    async def both() -> list[list[Any]]:
        return await asyncio.gather(alone(), within(), alone())

    found = [answer for answers in asyncio.run(both()) for answer in answers]
    return pairs(found, known(row, first) * 3)


def in_a_copied_context(row: Override) -> Pairs:
    """Built in a copy of the context; differentiated in another one, here, and in an empty one."""
    w = contextvars.copy_context().run(build, row)
    found = [*contextvars.copy_context().run(ask, w), *ask(w), *contextvars.Context().run(ask, w)]
    return pairs(found, known(row, second) * 3)


def in_a_worker(row: Override) -> Pairs:
    """Built here and differentiated in a thread; built there, and differentiated here."""
    w = build(row)
    found = in_thread(ask, w)
    return pairs([*found, *ask(in_thread(build, row))], known(row, second) * 2)


def in_thread(what: Callable[[Any], Any], given: Any) -> Any:
    """What a thread of its own returns."""
    found: list[Any] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            found.append(what(given))
        except BaseException as error:
            errors.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    for error in errors:
        raise error
    return found[0]
