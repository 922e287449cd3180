"""The text of a file: JSON with a line for each piece, so that two files can be compared."""

from __future__ import annotations

import json
from typing import Any

from ..base.errors import FileError
from .tables import text_of

LONGEST = 1 << 28


def dump(document: dict[str, Any]) -> bytes:
    """The one form of a document: a line for each entry, and for each item of a list in it."""
    rows = [f"{text_of(k)}:{_lines(v)}" for k, v in document.items()]
    return ("{\n" + ",\n".join(rows) + "\n}\n").encode("ascii")


def _lines(value: Any) -> str:
    if isinstance(value, list) and value and not isinstance(value[0], int | str):
        return "[\n" + ",\n".join(map(_item, value)) + "\n]"
    return text_of(value)


def _item(value: Any) -> str:
    """A graph has a line for each column."""
    if isinstance(value, dict) and "ops" in value:
        rows = [f"{text_of(k)}:{text_of(v)}" for k, v in value.items()]
        return "{\n" + ",\n".join(rows) + "}"
    return text_of(value)


def parse(raw: bytes | memoryview) -> Any:
    """A document; FileError for input that is not a JSON, nests too deep, or says a name twice."""
    if len(raw) > LONGEST:
        raise FileError(f"its text has {len(raw)} bytes; at most {LONGEST} are read")
    try:
        return json.loads(bytes(raw), object_pairs_hook=_once, parse_constant=_refused)
    except FileError:
        raise
    except RecursionError:
        raise FileError("its text nests too deep") from None
    except ValueError as error:
        raise FileError(f"its text is not JSON: {error}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [k for k, _ in pairs]
        twice = next(k for k in names if names.count(k) > 1)
        raise FileError(f"its text says {twice!r:.40} twice")
    return members


def _refused(word: str) -> Any:
    raise FileError(f"its text has {word}, which is not JSON")
