"""The survival matrix: every override through every transform.

python tools/survival.py            run every cell; print the table, counts, and what is wrong
python tools/survival.py --write    write docs/survival.md from what is declared

H honoured: the rule's own effect is there, equal to a plain graph that spells out what it means.
E a loud error that names the rule or site and the line. S silent: a failure. X any other error.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.survival import matrix  # noqa: E402
from tests.zoo import survival as zoo  # noqa: E402

DOCUMENT = ROOT / "docs" / "survival.md"
HEAD = """# The survival matrix

An override is applied exactly where it was put, through every transform, or an error says why not.
Here are the overrides (rows) and the transforms (columns) for which the test suite checks that,
cell by cell (`tests/survival/`). The rows mark the middle of a small program; the derivatives,
mostly of orders 1 and 2, are compared with those of a plain graph that spells out what the rule
means and in which nothing is marked. **H**: honoured, equal to that. **E**: a loud error that names
the rule or site and the line, because the combination means nothing.

This page shows what the tests demand; a cell that is not so fails the test of its row, by name.
`python tools/survival.py` runs every cell and prints what it finds; `--write` writes this page.
"""
REASONS = """
## Why an error is the right answer

- Forward mode is the transpose of a rule, so a rule has to be linear in the gradients that it is
  given, or bring its own `jvp=`.
- The own gradient of an op is no mark, so there is nothing to take off.
- Another rule that is put on a `custom_gradient` has to give gradients of what that captured, as
  its own `grad_fn` did.
- Where each example of a batch chooses, both branches of a `cond` are run for all of them: what may
  have effects, as a Python function may, would be run for examples that do not choose it.
"""


def document():
    """The whole page."""
    rows = matrix.letters(matrix.declared)
    cells = "".join(rows)
    first = (
        f"\n{len(rows)} overrides x {len(rows[0])} transforms = {len(cells)} cells: "
        f"{cells.count('H')} to be honoured, {cells.count('E')} to be loud errors.\n"
    )
    blocks = "".join(f"\n```\n{text}\n```\n" for text in (matrix.table(rows), matrix.legend()))
    return HEAD + first + blocks + REASONS + zoo.page()


def run():
    """Run every cell; the table, and what is wrong."""
    seen, wrong = {}, []
    for row in matrix.OVERRIDES:
        for column in matrix.COLUMNS:
            found = seen[row.name, column.title] = matrix.outcome(row, column)
            complaint = matrix.complaint(row, column, found)
            if complaint:
                wrong.append(f"{row.name}, {column.title}: {complaint}")
    rows = matrix.letters(lambda row, column: seen[row.name, column.title].status)
    return rows, wrong


def main():
    """Parse the command line and run; 1 where a cell is not as declared."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true")
    if parser.parse_args().write:
        DOCUMENT.write_text(document())
        return 0
    rows, wrong = run()
    print(matrix.table(rows), matrix.legend(), matrix.counts(rows), sep="\n\n")
    print(*(f"\n{text}" for text in wrong), sep="\n", end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
