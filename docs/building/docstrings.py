"""Docstrings as reStructuredText.

A public docstring is plain text: a summary, sections (`Parameters:`, `Returns:`, `Raises:`,
`Gradient:`, `Source:`), and an example. Stars, bars and underscores in it are what they are,
backticks mark code, two columns are a list, and what is indented is shown as it stands.
"""

import inspect
import re
from textwrap import dedent, indent

SECTION = re.compile(r"^(Parameters|Returns|Raises|Gradient|Source):(?=\s|$)", re.MULTILINE)
ENTRY = re.compile(r"(?P<names>[\w*]+(?:, [\w*]+)*): +(?P<text>\S.*)", re.DOTALL)
ROW = re.compile(r"(\S(?:[^\n]*?\S)?) {2,}(\S.*)", re.DOTALL)
COLUMNS = re.compile(r"^ |\S {2,}\S", re.MULTILINE)


def process(_app, _what, _name, _object, _options, lines):
    """Replace the lines of a docstring by reStructuredText, as autodoc asks for."""
    text, prompt, example = "\n".join(lines).partition(">>>")
    summary, *sections = SECTION.split(text)
    out = prose(summary)
    for heading, said in zip(sections[::2], sections[1::2], strict=True):
        out += [f"**{heading}**", "", *section(heading, said)]
    if example.strip():
        out += [".. code-block:: pycon", "", indent(prompt + example, "    "), ""]
    lines[:] = "\n".join(out).split("\n")


def signature(_app, what, _name, o, _options, given, _returned):
    """No signature for a class that the library makes: one to be made tells its parameters.

    Those of `graphgrad.tf1` are made as in TensorFlow.
    """
    if what not in ("class", "exception") or not given or o.__module__.startswith("graphgrad.tf1"):
        return None
    return None if "\nParameters:" in (inspect.getdoc(o) or "") else ("", None)


def skipped(_app, _what, _name, member, _skip, _options):
    """Fields of named tuples, of which the docstring of the class has told."""
    return True if (inspect.getdoc(member) or "").startswith("Alias for field number") else None


def section(heading, text):
    """What stands under a heading: a list of parameters, or prose."""
    if heading == "Parameters":
        found = [
            ENTRY.fullmatch(e.strip()) for e in re.split(r"\n(?=\S)", dedent(text).strip("\n"))
        ]
        if all(found):
            told = [f"- **{escaped(m['names'])}**: {marked(m['text'])}" for m in found]
            return [*told, ""]
    return prose("\n".join(line.removeprefix("    ") for line in text.strip().split("\n")))


def prose(text):
    """Paragraphs; two columns are a list, and what is indented is shown as it stands."""
    out = []
    for part in re.split(r"\n\s*\n", text.strip("\n")):
        rows = [ROW.fullmatch(row) for row in re.split(r"\n(?=\S)", dedent(part))]
        if all(rows):
            out += [*(f"- **{escaped(row[1])}**: {marked(row[2])}" for row in rows), ""]
        elif COLUMNS.search(part):
            out += ["::", "", indent(dedent(part), "    "), ""]
        elif part.strip():
            out += [marked(part), ""]
    return out


def marked(text):
    """Prose on one line, whose backticks mark code."""
    parts = re.split(r"`+([^`]+)`+", " ".join(text.split()))
    return "".join(f"\\ ``{p}``\\ " if i % 2 else escaped(p) for i, p in enumerate(parts))


def escaped(text):
    """Text in which no character has a meaning."""
    return re.sub(r"([\\*_|`<>])", r"\\\1", text)
