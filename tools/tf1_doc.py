"""The lists in docs/tf1.md: what graphgrad.tf1 has of TensorFlow 1's names, and its op types.

python tools/tf1_doc.py            print the document
python tools/tf1_doc.py --write    write it
"""

import argparse
import re
from functools import reduce
from pathlib import Path
from textwrap import fill
from types import ModuleType

import graphgrad.tf1 as tf
from graphgrad.tf1 import derived, function
from graphgrad.tf1.definition import DEFINITIONS
from graphgrad.tf1.registry import gradient_registry

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "tf1.md"
SPACES = ["nn", "nn.rnn_cell", "train", "layers", "losses", "math", "linalg", "random", "image"]
SPACES += ["errors", "initializers", "signal", "summary", "test", "app", "flags", "logging", "nest"]
SPACES += [
    "bitwise",
    "distributions",
    "gfile",
    "graph_util",
    "contrib.image",
    "contrib.layers",
    "contrib.slim",
    "contrib.framework",
]
SPACES += ["contrib.graph_editor", "contrib.metrics", "contrib.opt", "contrib.rnn", "contrib.util"]
MADE_AS_ASKED = (derived._lower, function._call)
"""What lowers op types that appear when a program asks for them: derivatives, Defuns."""
KINDS = {
    "TensorFlow's": "its gradient is made of ops as in TensorFlow, so that maps reach them",
    "derived": "its gradient is one op, which computes what graphgrad's own vjp does",
    "none": "its gradient is None, or, where TensorFlow has none either, a LookupError",
}


def offered(module):
    """The public names of a module that are neither modules nor `annotations`."""
    names = dir(tf) if module is tf else getattr(module, "__all__", None)
    names = names or [n for n in vars(module) if n[0] != "_"]
    named = set(names) - {"annotations"}
    return sorted(name for name in named if not isinstance(getattr(module, name), ModuleType))


def spaces():
    """{what a space of names is called: its names}."""
    return {".".join(filter(None, ["tf", s])): offered(module_of(s)) for s in ["", *SPACES]}


def module_of(space):
    """The module of "nn.rnn_cell"."""
    return reduce(getattr, filter(None, space.split(".")), tf)


def names():
    """A paragraph for each space of names."""
    return "\n\n".join(
        f"**{space}** ({len(listed)})\n\n" + fill(", ".join(f"`{n}`" for n in listed), 110)
        for space, listed in spaces().items()
    )


def kind_of(op_type):
    """What its gradient is made of."""
    entry = gradient_registry._registry.get(op_type)
    if entry is None or entry["type"] is None:
        return "none"
    return "derived" if "derived" in entry["type"].__module__ else "TensorFlow's"


def op_types():
    """A paragraph for each kind of gradient."""
    public = [t for t, d in DEFINITIONS.items() if d.lower not in MADE_AS_ASKED]
    parts = []
    for kind, meaning in KINDS.items():
        listed = sorted(t for t in public if kind_of(t) == kind)
        text = fill(", ".join(f"`{t}`" for t in listed), 110)
        parts.append(f"**{kind}** ({len(listed)}): {meaning}\n\n{text}")
    return "\n\n".join(parts)


def written(text):
    """The document with its lists as they are now."""
    for mark, body in (("names", names()), ("types", op_types())):
        block = f"<!-- {mark} -->\n\n{body}\n\n<!-- end -->"
        text = re.sub(rf"<!-- {mark} -->.*?<!-- end -->", lambda _, b=block: b, text, flags=re.S)
    return text


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    text = written(DOCUMENT.read_text())
    if parser.parse_args().write:
        DOCUMENT.write_text(text)
    else:
        print(text)
