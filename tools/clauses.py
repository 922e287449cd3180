"""The list of tests by clause at the end of docs/semantics.md.

python tools/clauses.py            print it
python tools/clauses.py --write    write it into the document
"""

import argparse
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "semantics.md"
HEADING = "## Tests by clause\n"


def clauses():
    """The clauses that the document states, in order."""
    return re.findall(r"^\*\*(S\d+)\*\*", DOCUMENT.read_text(), re.MULTILINE)


def tests():
    """clause -> [(file, test)], from the names of the tests."""
    found = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name in re.findall(
            r"^(?:async )?def (test_(?:S\d\d_)+\w+)", path.read_text(), re.MULTILINE
        ):
            for number in re.findall(r"S(\d\d)_", name):
                clause = f"S{int(number)}"
                found.setdefault(clause, []).append((path.relative_to(ROOT).as_posix(), name))
    return found


def table():
    """The section as markdown."""
    known = tests()
    lines = [HEADING]
    for clause in clauses():
        lines.append(f"- **{clause}**")
        by_file = {}
        for file, name in known.get(clause, []):
            by_file.setdefault(file, []).append(name)
        for file, names in by_file.items():
            lines.append(
                f"  - `{file}`: " + ", ".join(f"`{n.removeprefix('test_')}`" for n in names)
            )
    return "\n".join(lines) + "\n"


def main():
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true")
    if parser.parse_args().write:
        text = DOCUMENT.read_text()
        DOCUMENT.write_text(text[: text.index(HEADING)] + table())
    else:
        print(table())


if __name__ == "__main__":
    main()
