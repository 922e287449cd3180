"""docs/lost.md, from the outcomes that were recorded."""

import json
from pathlib import Path

from rows import ROWS

HERE = Path(__file__).resolve().parent
OUTCOMES = HERE / "outcomes.json"
DOCUMENT = HERE.parents[1] / "docs" / "lost.md"
FRAMEWORKS = [
    "in_graphgrad",
    "in_tf1",
    "in_tf2",
    "in_pytorch",
    "in_jax",
    "in_pytensor",
    "in_autograd",
]
WORDS = {
    "right": "right",
    "silent": "**wrong**",
    "said": "error",
    "not offered": "not offered",
    "cannot be": "-",
}
HEAD = """# Why rules get lost

A rule that is skipped raises no error: you just get different numbers. This page tries what a rule
should survive in seven frameworks. Each cell is a small program that was run: a function in a file
of [tools/lost/](../tools/lost/prove.py), written as the framework's documentation recommends. Most
programs compute x ** 3, with a rule that is twice its derivative, and differentiate the square of
the result at 2. The right gradient is 384; without the rule it is 192.

- **right**: the result matches the rule.
- **wrong**: the result differs, without an error or a warning. The numbers are below.
- **error**: an error was raised. Where no result can be right, such as for a rule that returns the
  wrong shape, an error is the best outcome.
- **not offered**: the framework has no such feature. **-**: the problem cannot occur.

"""
FOOT = """
## Why graphgrad does not lose them

A region is one step of the graph, and differentiating the graph calls its rule. Loops, copies,
files and batches are graphs too, so they treat a rule the same way. Differentiation works on
graphs and optimization on programs, and a program is never differentiated, so no pass can lose a
rule. [The survival matrix](survival.md) lists every kind of override with every transform.

## Run it yourself

`python tools/lost/prove.py --newest` runs the newest release of each framework in its own
environment, stores the outcomes in `tools/lost/outcomes.json` and writes this page. Without
`--newest`, it runs the installed frameworks and prints the table. The tests run graphgrad's column,
and JAX's column if JAX is installed.
"""


def outcomes():
    """What was recorded, framework by framework."""
    return json.loads(OUTCOMES.read_text()) if OUTCOMES.exists() else {}


def write(found):
    """Record outcomes and write the page."""
    ordered = {name: found[name] for name in FRAMEWORKS if name in found}
    OUTCOMES.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")
    DOCUMENT.write_text(document(ordered))


def document(found):
    """The whole page."""
    sections = "".join(section(name, column) for name, column in found.items())
    return HEAD + table(found) + sections + FOOT


def table(found, rows=ROWS):
    """Rows by frameworks."""
    lines = [line(["", *(column["name"] for column in found.values())])]
    lines.append(line(["---"] * (len(found) + 1)))
    for key in rows:
        words = [WORDS[column["cells"][key]["outcome"]] for column in found.values()]
        lines.append(line([ROWS[key].title, *words]))
    return "\n".join(lines) + "\n"


def line(cells):
    """One line of a table."""
    return f"| {' | '.join(cells)} |"


def section(name, column):
    """What a framework's cells say in full."""
    versions = ", ".join(f"{package} {version}" for package, version in column["versions"].items())
    parts = [
        f"\n## {column['name']}\n",
        f"[{name}.py](../tools/lost/{name}.py): {versions}; run on {column['day']}.\n",
    ]
    cells = {
        key: ROWS[key]._asdict() | cell | {"program": key} for key, cell in column["cells"].items()
    }
    more = {key: cell | {"program": key} for key, cell in column["more"].items()}
    every = [*cells.values(), *more.values()]
    parts += [wrong(cell) for cell in every if cell["outcome"] == "silent"]
    said = [cell for cell in every if cell["outcome"] == "said"]
    if said:
        parts.append(("\n" if parts[2:] else "") + "Errors:\n")
        parts += [f"- {cell['title']}: `{shortened(cell['got'])}`{link(cell)}" for cell in said]
    absent = [cell for cell in cells.values() if cell["outcome"] == "not offered"]
    if absent:
        reasons = "; ".join(f"{cell['title']} ({cell['why']})" for cell in absent)
        parts.append(f"\nNot offered: {reasons}.")
    return "\n".join(parts) + "\n"


def wrong(cell):
    """A cell whose outcome is not what was meant, with both numbers."""
    meant = shown(cell["meant"]) + (" or an error" if cell["or_says_so"] else "")
    return (
        f"- **{cell['title']}** (`{cell['program']}`): {shown(cell['got'])} where "
        f"{meant} is right. {cell.get('why', '')}{link(cell)}"
    )


def shown(value):
    """A number, numbers or words."""
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def link(cell):
    """Where it is documented."""
    return f" ([source]({cell['source']}))" if "source" in cell else ""


def shortened(text, room=150):
    """The beginning of a message."""
    return (text if len(text) <= room else text[:room].rpartition(" ")[0] + " ...").replace(
        "`", "'"
    )
