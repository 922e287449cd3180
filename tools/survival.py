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

An override is applied exactly where you put it, through every transform, or an error says why not.
This table has overrides as rows and transforms as columns; the test suite checks every cell
(`tests/survival/`). Each row marks the middle of a small program. Derivatives, mostly of orders 1
and 2, are compared with those of a graph without marks that computes the intended gradient.
**H** (honoured): they are equal. **E** (error): the combination has no meaning, and an error names
the rule or site and the line.

The page shows the expected results; a cell with a different result fails the test of its row.
`python tools/survival.py` runs every cell and prints the results; `--write` writes this page.
"""
REASONS = """
## Why an error is the right answer

- Forward mode transposes a rule, so the rule must be linear in its cotangents or have its own
  `jvp=`.
- An op's built-in gradient is not a mark, so there is no mark to remove.
- If you replace the rule of a `custom_gradient`, the new rule must return gradients for the
  captured tensors, like the original `grad_fn`.
- If each example of a batch selects its own branch of a `cond`, both branches run for all examples.
  A Python function with side effects would then run for examples that did not select it.
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
