"""Names in every kind of text: what a user, a file or a rule called something is shown, never run.

Each function makes of any string one line for one place: DOT strings, DOT's HTML-like labels, HTML,
Mermaid, JSON inside a page, a terminal. What is not printable (control, bidi and combining marks,
line ends) is spelled out everywhere, as \\n and \\u202e; the rest is kept as it reads.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ...base.words import shortened as shortened
from ...base.words import spelled
from ...base.words import visible as visible

__all__ = ["for_dot", "for_html", "for_markup", "for_mermaid", "for_page", "quoted"]

NAME_LIMIT, TEXT_LIMIT = 40, 600

_in_dot = re.compile(r'[^ -~]|[\\"&<>]')
_in_markup = re.compile(r"[^ -~]|[\\\"'&<>]")
_in_mermaid = re.compile(r"[^ -~]|[\\\"'`&<>#;{}|%$]")
_DOT = {"\\": "\\\\", '"': '\\"', "&": "&amp;", "<": "&lt;", ">": "&gt;"}


def for_dot(text: str, limit: int = TEXT_LIMIT) -> str:
    """The inside of a quoted DOT string: ASCII; letters of any script become references."""
    text = shortened(text, limit)
    return text if _in_dot.search(text) is None else _in_dot.sub(_dot, text)


def quoted(*lines: str, limit: int = NAME_LIMIT) -> str:
    """A quoted DOT string of these lines, each escaped and at most limit long."""
    return '"' + "\\n".join([for_dot(line, limit) for line in lines]) + '"'


def for_markup(text: str, limit: int = NAME_LIMIT) -> str:
    """The text of an HTML-like label in DOT: ASCII, special characters as references."""
    return _in_markup.sub(_reference, shortened(text, limit))


def for_html(text: str, limit: int = TEXT_LIMIT) -> str:
    """Text or an attribute's value in HTML; line ends stay, for <pre>."""
    rows = shortened(text, limit).split("\n")
    return "\n".join([_in_markup.sub(_reference, row) for row in rows])


def for_mermaid(text: str, limit: int = NAME_LIMIT) -> str:
    """The inside of a quoted Mermaid label, where references are written #34; and not &#34;.

    A backslash before an n would break the line there, so something without width is between.
    """
    escaped = _in_mermaid.sub(lambda m: _reference(m, "#"), shortened(text, limit))
    return escaped.replace("#92;n", "#92;#8203;n")


def for_page(value: Any) -> str:
    """JSON that may stand inside a <script> of a page, and reads back as the same value."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for c in "<>&":
        text = text.replace(c, f"\\u{ord(c):04x}")
    return text


def _dot(match: re.Match[str]) -> str:
    c = match[0]
    escape = _DOT.get(c)
    if escape is not None:
        return escape
    return f"&#{ord(c)};" if c.isalnum() else "\\" + spelled(c)


def _reference(match: re.Match[str], mark: str = "&#") -> str:
    c = match[0]
    if (c.isascii() and c.isprintable()) or c.isalnum():
        return f"{mark}{ord(c)};"
    return "".join(f"{mark}92;" if d == "\\" else d for d in spelled(c))
