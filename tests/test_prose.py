"""Words that the documentation does not use: what a reader of JAX's or NumPy's stumbles over.

Add to WORDS what should not come back, with what to write instead. Pages that programs write, such
as docs/ops.md, quote docstrings; of these the public ones are read.
"""

import importlib
import inspect
import re
from pathlib import Path

import pytest

from .test_public import MODULES

ROOT = Path(__file__).resolve().parent.parent
WRITTEN_BY_PROGRAMS = {
    *("ops.md", "rules.md", "lost.md", "first_tries.md", "survival.md", "tf1.md", "trust.md"),
}
CODE = re.compile(r"```.*?^\s*```|`[^`\n]+`", re.DOTALL | re.MULTILINE)

WORDS = {
    r"(?:^|[.;:?] )Who(?= (?!is\b|are\b|kills\b|pulls\b)\w+)": "If you; Whoever",
    r"\bfor who\b": "for anyone who",
    r"\bat home\b": "in the graph that it comes from",
    r"\bwithout a word\b": "silently",
    r"\bshall\b": "should, must, will",
    r"\bas ever\b": "as usual",
    r"\bis had\b|\bare had\b|\bto be had\b": "you get; there is",
    r"\bthe house\b": "the code",
    r"\bbuilds? graph\b(?! )": "builds a graph; is graph code",
    r"\b(?:names|things|what) that (?:is|are) there\b": "existing; supported",
    r"\bwhat is no\b": "anything that is not a",
    r"(?<![Tt]here )(?<!that )\b(?:is|are) no (?:output|mark|gradient|derivative|plan|rule)\b": (
        "is not a"
    ),
    r"\bof which (?:you|one|nothing|some|zennit)\b": "whose; that; some of which",
    r"\bElement by element\b|\bEvery public name\b": "Element-wise; API reference",
}
"""Pattern -> what to write instead."""

OF_DOCSTRINGS = {r"\bis had\b|\bare had\b|\bto be had\b", r"\bshall\b", r"\bwithout a word\b"}
"""Those that public docstrings are free of, too."""


def pages():
    """The pages that somebody wrote, and the tutorials."""
    found = [p for p in (ROOT / "docs").rglob("*.md") if "_made" not in p.parts]
    found = [p for p in found if p.name not in WRITTEN_BY_PROGRAMS and "_build" not in p.parts]
    found += (ROOT / "docs" / "tutorials").glob("*.py")
    return sorted([*found, ROOT / "README.md", ROOT / "CONTRIBUTING.md"])


def wrong_in(text, words=WORDS):
    """(line, what stands there, what to write) of each word in prose."""
    prose = CODE.sub(lambda code: re.sub(r"[^\n]", "_", code[0]), text)
    for pattern in words:
        for found in re.finditer(pattern, prose, re.MULTILINE):
            yield text.count("\n", 0, found.start()) + 1, found[0].strip(" .;:?"), WORDS[pattern]


@pytest.mark.parametrize("path", pages(), ids=lambda p: p.name)
def test_pages_use_the_words_of_the_field(path):
    found = list(wrong_in(path.read_text(encoding="utf-8")))
    assert not found, "\n".join(
        f"{path}:{n}: {said!r}; write {better}" for n, said, better in found
    )


def test_docstrings_use_the_words_of_the_field():
    found = {}
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            text = inspect.getdoc(getattr(module, name)) or ""
            if said := list(wrong_in(text, OF_DOCSTRINGS)):
                found[f"{module.__name__}.{name}"] = said
    assert found == {}


def test_what_is_wrong_is_found_in_prose_alone():
    assert [said for _, said, _ in wrong_in("It ends. Who loads it needs nothing.")] == ["Who"]
    assert list(wrong_in("`what is no` is code\n```python\n# Who loads it\n```\n")) == []
    assert set(WORDS) >= OF_DOCSTRINGS
