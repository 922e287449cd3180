"""docs/images: the pictures of README.md and docs/, drawn by the library as it is.

python tools/pictures_doc.py            say which are old
python tools/pictures_doc.py --write    draw them anew; needs Graphviz

A picture says what it was drawn of: the digest of its DOT text stands in it.
"""

import argparse
import hashlib
import re
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np

import graphgrad as gg

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"


def readme():
    """What the first program of README.md writes: the loss and its gradient."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    program = next(p for p in re.findall(r"```python\n(.*?)```", text, re.S) if "write_dot" in p)
    before, after = program.split("with gg.Graph():")
    names = {}
    lines = f"{before}with gg.Graph():{after}".split("\nf = gg.compile")[0]
    with redirect_stdout(StringIO()), gg.Graph():
        exec(compile(lines, "ste.py", "exec"), names)
    return [names["loss"], names["dw"]]


def training():
    """A training step: layers that repeat, a rule in each, and what Adam updates."""
    with gg.Graph("training"):
        h = gg.placeholder(("batch", 64), name="x")
        params = []
        for i in range(8):
            with gg.name_scope(f"layer{i}"):
                params.append(gg.variable(np.ones((64, 64)), name="w"))
                h = h @ params[-1]
                with gg.override_gradient(gg.rules.ste(window=1.0)):
                    h = gg.sign(h)
        with gg.name_scope("loss"):
            loss = gg.mean(gg.square(h))
        updates = gg.optimizers.Adam().updates(params, gg.gradients(loss, params))
    return [loss, *updates.values()]


PICTURES = {"ste": readme, "training": training}


def digest_of(shown):
    """What tells whether a picture is of this graph, drawn like this."""
    return hashlib.sha256(gg.to_dot(shown).encode("ascii")).hexdigest()[:16]


def old():
    """The names of pictures that are not what would be drawn now."""
    found = []
    for name, make in PICTURES.items():
        path = IMAGES / f"{name}.svg"
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        if f"<!-- of {digest_of(make())} -->" not in text:
            found.append(name)
    return found


def write():
    """Draw all."""
    for name, make in PICTURES.items():
        shown = make()
        svg = gg.to_svg(shown).rstrip("\n")
        text = f"{svg}\n<!-- of {digest_of(shown)} -->\n"
        (IMAGES / f"{name}.svg").write_text(text, encoding="utf-8", newline="\n")


def main():
    """0: all is as it would be drawn; 1: some are old."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true")
    if parser.parse_args().write:
        write()
    names = old()
    print(f"old: {', '.join(names)}" if names else "all pictures are as they would be drawn now")
    return bool(names)


if __name__ == "__main__":
    sys.exit(main())
