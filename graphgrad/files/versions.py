"""The versions of the format, and how the text of an older one becomes one of this."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.errors import FileError

FORMAT = "graphgrad"
VERSION = 2

Document = dict[str, Any]


def _with_lengths(document: Document) -> Document:
    """Version 2 has lengths in attributes, which a reader of version 1 does not know."""
    return document


MIGRATIONS: dict[int, Callable[[Document], Document]] = {1: _with_lengths}
"""Version -> what makes the next one of it."""

FUNCTIONS = "python functions"
SITES = "sites of tensors"
KNOWN = frozenset([FUNCTIONS, SITES])
"""What a file may need of its reader."""


class NewerFileError(FileError):
    """A file that is whole, and of another version than is read here."""


def is_newer(error: BaseException | None) -> bool:
    """Whether an error says, in the end, that a file is of another version."""
    while error is not None and not isinstance(error, NewerFileError):
        error = error.__cause__
    return error is not None


def up_to_date(content: Any, kind: str) -> Document:
    """The text of a file in the form of this version; FileError where that cannot be."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise FileError("it is not a file of graphgrad")
    document: Document = content
    if document.get("kind") != kind:
        raise FileError(f"it holds a {document.get('kind')!r:.40}, not a {kind}")
    version, made_by = document.get("version"), document.get("made_by")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise NewerFileError(
            f"it has format version {version!r:.20}, made by {made_by!r:.60}; this graphgrad "
            f"reads versions 1 to {VERSION}. Read it with a newer one"
        )
    needs = [need for need in document.get("needs", ()) if need not in KNOWN]
    if needs:
        raise NewerFileError(f"it needs {needs!r:.120}, which this graphgrad does not know")
    while version < VERSION:
        document = MIGRATIONS[version](document)
        version += 1
    return document
