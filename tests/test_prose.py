"""Words that the documentation does not use: what a reader of JAX's or NumPy's stumbles over.

Add to WORDS what should not come back, with what to write instead. All pages and tutorials are
searched, the docstrings of everything public, and the messages: every other string of the package.
"""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

from .test_public import MODULES

ROOT = Path(__file__).resolve().parent.parent
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
    r"\bturned? round\b": "flipped; transposed; reversed",
    r"\bthe other way round\b": "reversed",
    r"\bby whomever\b": "by any program",
    r"\bas (?:the |an? )?[\w']+(?: \w+)? ha(?:s|ve) it\b": "according to; as in",
    r"\b[Ww]hat is refused\b": "not supported",
    r"\b(?:is|are) handed (?:on|over|to)\b|\bhands? (?:it|them|the \w+) on\b": "passed on",
    r"\b(?:is|are|was|were) pass(?:es|ed) (?:over|by)\b|\bpasses over\b": "skipped",
    r"\b(?:us|ms) an? (?:forward )?(?:node|region|call|op|run)\b": "per node",
    r"\bwhole numbers?\b": "integers",
    r"\bcounted round\b": "modulo the length",
    r"\bknown (?:only )?when (?:run|it runs)\b|\bchecked when run\b": "at run time",
    r"\b(?:made|built|drawn) anew\b(?! (?:by|in|with))": "rebuilt; built again",
    r"\b(?:that|what) nobody\b|\bsomebody chooses\b": "unregistered; a choice",
    r"\bwins? over\b": "takes precedence over",
    r"\bin a circle\b": "in a cycle",
    r"\b(?:graph|program|model)s? that exists?\b": "existing",
    r"\bpresent values?\b": "current value",
    r"\b(?:is|are) (?:asked|told) (?:of|for|with)\b": "requested; described",
    r"\b[Ww]hat (?:it|they) (?:makes?|reads?|gives?|holds?) (?:is|are)\b": "its outputs; inputs",
    r"\b[Ww]hat (?:is|are) (?:fed|donated|healed|gone|added up)\b": "inputs; the healed formula",
    r"\bthe (?:forward|backward) part\b": "the forward pass",
    r"\blengths? beside\b": "lengths of other axes",
    r"\bjourneys?\b": "transforms; copies",
    r"\btold of\b": "described; declared",
    r"\bspeaks? for\b|\banswers? for\b|\brule answers\b": "the rule applies",
    r"\bholds? (?:it|a rule|one rule) to\b": "checks that",
    r"\bin a run alone\b|\bonly when run\b|\bonly a run knows\b": "only at run time",
    r"\bnone that is known\b|\bnothing here reads\b": "is unknown; is not supported",
    r"\bno values decide\b": "does not depend on values",
    r"\b(?:is|are) to be\b": "must be; should be; is",
    r"\bof (?:one|two) graphs?\b": "in one graph; in different graphs",
    r"\bis of (?:another|shape|version)\b": "has another; has the shape; has version",
    r"\bthere is nothing in it\b|\bwithout elements\b": "is empty",
    r"\bcarried (?:along|here)\b": "copied",
    r"\bway from floats\b": "path from floats",
    r"\bcounts? only if (?:it|the rule) asks\b": "has an effect only if the rule calls",
    r"\bgo(?:es)? on after\b|\bwas left already\b": "continues after; has already ended",
    r"\bno input tells\b|\bcannot be told\b": "no input determines; cannot be determined",
    r"\bElement by element\b|\bEvery public name\b": "Element-wise; API reference",
}
"""Pattern -> what to write instead."""


def pages():
    """The pages, those that programs write too, and the tutorials."""
    made = {"_made", "_build"}
    found = [p for p in (ROOT / "docs").rglob("*.md") if made.isdisjoint(p.parts)]
    found += (ROOT / "docs" / "tutorials").glob("*.py")
    return sorted([*found, ROOT / "README.md", ROOT / "CONTRIBUTING.md"])


def strings(tree):
    """(line, text) of each string of a module but docstrings; a value in it is `_`."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Expr(value=ast.Constant()):
                continue
            case ast.JoinedStr(values=parts):
                text = [p.value if isinstance(p, ast.Constant) else "_" for p in parts]
                yield node.lineno, "".join(text)
            case ast.Constant(value=str(text)) if not isinstance(tree, ast.JoinedStr):
                yield node.lineno, text
        yield from strings(node)


def wrong_in(text):
    """(line, what stands there, what to write) of each word in prose."""
    prose = CODE.sub(lambda code: re.sub(r"[^\n]", "_", code[0]), text)
    for pattern in WORDS:
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
            if said := list(wrong_in(text)):
                found[f"{module.__name__}.{name}"] = said
    assert found == {}


@pytest.mark.ci
def test_messages_use_the_words_of_the_field():
    found = []
    for path in sorted((ROOT / "graphgrad").rglob("*.py")):
        whole = strings(ast.parse(path.read_text(encoding="utf-8")))
        rows = [(line, text) for line, text in whole if text.count(" ") > 1]
        for n, said, better in wrong_in("\n".join(text.replace("\n", " ") for _, text in rows)):
            found.append(f"{path}:{rows[n - 1][0]}: {said!r}; write {better}")
    assert not found, "\n".join(found)


def test_strings_are_whole_and_without_docstrings():
    source = 'def f(x):\n    """It lies."""\n    raise ValueError(f"{x!r} is" f" no {g(1)}", "a b")'
    assert [text for _, text in strings(ast.parse(source))] == ["_ is no _", "a b"]


def test_what_is_wrong_is_found_in_prose_alone():
    assert [said for _, said, _ in wrong_in("It ends. Who loads it needs nothing.")] == ["Who"]
    assert list(wrong_in("`what is no` is code\n```python\n# Who loads it\n```\n")) == []
