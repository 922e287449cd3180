"""Names as they can be shown."""

import pytest

from graphgrad.base.words import shortened, visible, visible_lines


@pytest.mark.parametrize("limit", [12, 13, 14, 80, 120])
def test_long_text_is_cut_in_the_middle_to_the_limit(limit):
    text = "".join(chr(33 + i % 90) for i in range(500))
    found = shortened(text, limit)
    head, dots, tail = found.partition("...")
    assert len(found) == limit
    assert (text.startswith(head), dots, text.endswith(tail)) == (True, "...", True)
    assert len(head) > len(tail) > 0
    assert shortened(text[:limit], limit) == text[:limit]
    assert shortened(text[: limit + 1], limit) != text[: limit + 1]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ~ text", "plain ~ text"),
        ("größe 長さ λ", "größe 長さ λ"),
        ("two\nlines\t\r", r"two\nlines\t\r"),
        ("nul \0 bell \x07 delete \x7f", r"nul \x00 bell \x07 delete \x7f"),
        ("turned \u202e round", r"turned \u202e round"),
        ("separators \u2028 \u2029 \x85", r"separators \u2028 \u2029 \x85"),
        ("e\u0301", r"e\u0301"),
        ("half a pair \ud800", r"half a pair \ud800"),
        ("face \U0001f600", r"face \U0001f600"),
    ],
)
def test_what_is_shown_is_one_line_of_printable_characters(text, shown):
    assert visible(text) == shown
    assert visible(text).isprintable()
    assert len(visible(text).splitlines()) == 1
    visible(text).encode()


def test_the_lines_of_a_text_stay_lines():
    assert visible_lines("one\ntwo\x1b[31m\n\u202ethree") == "one\ntwo\\x1b[31m\n\\u202ethree"
    assert visible_lines("e\u0301") == r"e\u0301"
