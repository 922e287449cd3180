"""How deep calls may nest: an error of graphgrad where Python's own limit would end them."""

from __future__ import annotations

import sys

from .errors import GraphError

ROOM = 120  # frames that are kept for what ends, for errors, and for what calls nothing of the user

_getframe = sys._getframe


def check_room() -> None:
    """GraphError, because of a RecursionError, where little is left of the stack of calls.

    Asked where functions of the user nest: a branch in a branch, a rule that asks for the default
    of a rule. Where a RecursionError comes from anywhere instead, scopes may not be left.
    """
    limit = sys.getrecursionlimit()
    try:
        _getframe(max(limit - ROOM, limit // 2))
    except ValueError:  # the stack is not as deep as that
        return
    raise _too_deep() from RecursionError(f"fewer than {ROOM} of {limit} nested calls are left")


class Bounded:
    """A block without functions of the user: a RecursionError there becomes a GraphError."""

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, RecursionError):
            raise _too_deep() from error


def _too_deep() -> GraphError:
    return GraphError(
        f"what nests here is too deep for Python, which ends calls in calls at "
        f"{sys.getrecursionlimit()}: branches and loops in branches and loops, rules that ask for "
        "the default of regions with such rules, functions in functions of vmap(), checkpoint() or "
        "custom_gradient().\n"
        "Nest less, or raise the limit with sys.setrecursionlimit() (in a thread with a larger "
        "threading.stack_size())."
    )
