"""The shape of the house: imports point down, none is hidden, there is no cycle."""

import ast
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import networkx as nx
import pytest

import graphgrad

ROOT = Path(graphgrad.__file__).parent
LATE = re.compile(r'\b(?:LazyModule|LazyMethod|lazy_module|import_module)\("(graphgrad\.[\w.]+)"')
OPTIONAL = {"jax", "flatbuffers", "ml_dtypes", "scipy", "sklearn", "matplotlib", "rich", "jinja2"}
OPTIONAL |= {"pygraphviz", "pydot", "safetensors", "torch", "onnx", "onnxruntime"}
JAX = ("backend", "checks", "errors", "host", "layout", "processes", "run", "axis_loops")
ONLY_IN = {
    "jax": {
        *(f"execute/jax/{name}.py" for name in JAX),
        *(f"interop/jax_{name}.py" for name in ("calls", "export")),
        *(
            f"interop/jax_primitives/{name}.py"
            for name in ("building", "named", "opening", "retrofitting", "tracing")
        ),
    },
    "flatbuffers": {"interop/jax_export.py"},
    "ml_dtypes": {"base/kinds.py"},
    "scipy": {"ops/special/scipy_functions.py"},
    "pygraphviz": {"inspect/write/svg.py"},
    "rich": {"bench/rich_table.py"},
}
DEMO = {"sklearn", "matplotlib", "rich", "jinja2"}
BESIDE = {*sys.stdlib_module_names, "numpy"}
"""What tf1 imports beside graphgrad; optional packages by name, where they are used."""

MAY_IMPORT = {
    "base": set(),
    "ir": set(),
    "ops": {"ir"},
    "regions": {"ir"},
    "differentiate": {"ir", "ops", "regions"},
    "rules": {"ir", "ops", "regions", "differentiate"},
    "optimise": {"ir", "ops"},
    "lower": {"ir", "ops"},
    "execute": {"ir", "ops", "lower"},
    "inspect": {"ir", "ops", "regions", "differentiate", "lower", "execute"},
    "compiled": {"ir", "ops", "optimise", "execute", "lower", "inspect"},
    "checks": {"ir", "ops", "regions", "differentiate", "compiled", "healing"},
    "debug": {"ir", "ops", "compiled", "execute", "functions", "healing"},
    "files": {"ir", "ops", "regions", "differentiate", "compiled", "functions"},
    "distributed": {"ir", "compiled", "execute"},
    "session": {"ir", "ops", "compiled", "execute"},
    "optimizers": {"ir", "ops", "differentiate"},
    "initializers": {"ir"},
    "training": {"ir"},
    "testing": {"ir", "ops", "regions", "checks"},
    "functions": {"ir", "ops", "regions", "compiled"},
    "nn": {"ir", "ops"},
    "fft": {"ops"},
    "linalg": {"ops", "differentiate"},
    "special": {"ops"},
    "random": {"ir", "ops"},
    "vocabulary": {"ops", "differentiate", "lower"},
    "laws": {"ir", "ops", "differentiate", "compiled", "lower", "execute", "checks"},
    "extend": {"ir", "ops", "optimise", "lower", "execute", "laws", "healing"},
    "export": {"ir", "ops", "lower", "compiled", "files"},
    "onnx": {"ir", "ops", "regions", "differentiate", "rules", "lower", "compiled", "files"},
    "healing": {"ir", "ops", "regions", "differentiate", "optimise", "compiled", "inspect"},
    "attribution": {"ir", "ops", "regions", "differentiate", "rules", "compiled"},
    "interop": {
        "ir",
        "ops",
        "regions",
        "differentiate",
        "lower",
        "execute",
        "compiled",
        "functions",
        "files",
    },
}
"""What a floor may import, beside `base`."""

ROOMS = {
    "execute": {
        "results": set(),
        "kernels": {"results"},
        "backend": {"kernels"},
        "loading": {"backend"},
        "run": {"backend", "kernels", "results"},
        "numpy": {"run", "kernels"},
        "jax": {"backend", "kernels", "results"},
        "llvm/emit": set(),
        "llvm/functions": {"llvm/emit"},
        "llvm/loops": {"llvm/functions", "llvm/emit", "run"},
        "llvm/kernels": {"llvm/loops", "llvm/emit", "run", "kernels"},
        "llvm/machine": {"llvm/kernels", "llvm/loops", "llvm/emit", "run"},
        "llvm/backend": {"llvm/machine", "llvm/kernels", "llvm/loops", "llvm/emit", "numpy", "run"}
        | {"kernels"},
    },
    "inspect": {
        "scene": set(),
        "layout": {"scene"},
        "page": {"scene"},
        "write": {"scene", "layout", "page"},
        "diff": {"scene"},
        "notebook": {"scene", "write", "summary"},
        "passes": {"diff"},
        "summary": {"scene"},
    },
}
"""What the rooms of a floor may import of each other."""

ROOMS_OF_OPS = (
    {"control", "foreign", "identities", "nn", "protocols", "signal"},
    {"random"},
    {"arrays", "linalg"},
    {"contract", "special"},
    {"create"},
    {"reduce"},
    {"shape"},
    {"elementwise"},
)
"""The rooms of ops/ in levels: each imports those below it, and the files beside the rooms."""


@cache
def files():
    return sorted(ROOT.rglob("*.py"))


def part(path):
    """The floor a file is on: its folder, or its own name."""
    relative = path.relative_to(ROOT)
    return relative.parts[0].removesuffix(".py")


class Source(NamedTuple):
    """What the tests here ask of a file.

    imports    (what is imported, whether inside a function, whether only for types)
    classes    the names of its classes
    defined    the names that it defines: functions, classes, values, fields, parameters
    functions  how many there are, and in how many of them something is named `found`
    of_gg      what is read from `gg`: `graphgrad.nn.relu`
    """

    imports: list
    classes: list
    defined: set
    functions: tuple
    of_gg: set


@cache
def source_of(path):
    """By one walk over its tree, which is not kept: there would be a million nodes of all files."""
    imports, classes, defined, functions, finding, of_gg = [], [], set(), 0, set(), set()
    package = ["graphgrad", *path.relative_to(ROOT).parent.parts]
    pending = [(ast.parse(path.read_text()), (), False)]
    for node, around, typing in pending:
        kind = type(node)
        if kind is ast.Name:
            if node.id == "found":
                finding.update(around)
            if type(node.ctx) is ast.Store:
                defined.add(node.id)
            continue
        if kind is ast.Attribute:
            if type(node.ctx) is ast.Store:
                defined.add(node.attr)
            of_gg.update(read_from_gg(node))
        elif kind is ast.arg:
            defined.add(node.arg)
        elif kind is ast.Import or kind is ast.ImportFrom:
            imports += [(name, around != (), typing) for name in names_of(node, package)]
        elif kind is ast.ClassDef:
            classes.append(node.name)
            defined.add(node.name)
        elif kind is ast.FunctionDef or kind is ast.AsyncFunctionDef:
            functions += 1
            defined.add(node.name)
            around = (*around, node)
        elif kind is ast.If:
            typing = typing or getattr(node.test, "id", "") == "TYPE_CHECKING"
        pending += [(inner, around, typing) for inner in ast.iter_child_nodes(node)]
    return Source(imports, classes, defined, (functions, len(finding)), of_gg)


def names_of(node, package):
    """What a statement imports into a module of a package."""
    if isinstance(node, ast.Import):
        return [a.name for a in node.names]
    base = package[: len(package) - node.level + 1] if node.level else []
    module = ".".join([*base, *([node.module] if node.module else [])])
    return [f"{module}.{a.name}" for a in node.names]


def read_from_gg(node):
    """`graphgrad.nn.relu` of `gg.nn.relu`."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name) and node.id == "gg":
        yield ".".join(["graphgrad", *reversed(names)])


def imports(path):
    return source_of(path).imports


@cache
def module_of(name):
    """The file that an import of graphgrad's own leads to."""
    parts = name.split(".")[1:]
    for length in range(len(parts), -1, -1):
        base = ROOT.joinpath(*parts[:length])
        if base.with_suffix(".py").is_file() and length:
            return base.with_suffix(".py")
        if (base / "__init__.py").is_file():
            return base / "__init__.py"
    raise AssertionError(name)


def test_imports_point_down():
    wrong = []
    for path in files():
        here = part(path)
        if here in ("__init__", "__main__", "bench", "commands", "demo", "tf1"):
            continue
        for name, _, typing in imports(path):
            if name.split(".")[0] != "graphgrad" or typing:
                continue
            there = part(module_of(name))
            if there not in {here, "base", *MAY_IMPORT[here]}:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == []


def room(path):
    """The room of its floor that a file is in; one of execute/llvm/ is a room of its own."""
    floor, *parts = path.relative_to(ROOT).with_suffix("").parts
    return "/".join(parts[: 2 if (floor, parts[0]) == ("execute", "llvm") else 1])


def between_rooms(floor):
    """(file, import, the room of each) of the imports that leave a room of a floor."""
    for path in (ROOT / floor).rglob("*.py"):
        for name, _, _ in imports(path):
            if name.startswith(f"graphgrad.{floor}.") and path != ROOT / floor / "__init__.py":
                here, there = room(path), room(module_of(name))
                if here != there:
                    yield path.relative_to(ROOT).as_posix(), name, here, there


@pytest.mark.parametrize("floor", ROOMS)
def test_rooms_import_what_their_table_says(floor):
    imported = set(between_rooms(floor))
    wrong = {(f, name) for f, name, here, there in imported if there not in ROOMS[floor][here]}
    assert wrong == set()
    assert {here for _, _, here, _ in imported} == {
        r for r, others in ROOMS[floor].items() if others
    }


def test_rooms_of_ops_import_those_of_lower_levels():
    level = {name: i for i, names in enumerate(ROOMS_OF_OPS) for name in names}
    beside = len(ROOMS_OF_OPS)
    wrong = [
        (path, name)
        for path, name, here, there in between_rooms("ops")
        if level.get(here, beside) >= level.get(there, beside)
        and not (here not in level and there not in level)
    ]
    assert wrong == []
    assert {p.parent.name for p in (ROOT / "ops").glob("*/__init__.py")} == set(level)


def test_no_import_hides_in_a_function():
    hidden = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in files()
        for name, inside, _ in imports(path)
        if inside
    ]
    assert hidden == []


def test_no_cycles_between_modules():
    """Imports for types are counted: what names each other stands in one file."""
    graph = nx.DiGraph()
    for path in files():
        for name, _, _ in imports(path):
            if name.split(".")[0] == "graphgrad":
                target = module_of(name)
                if target != path and target.name != "__init__.py":
                    graph.add_edge(*(p.relative_to(ROOT).as_posix() for p in (path, target)))
    assert [c for c in nx.strongly_connected_components(graph) if len(c) > 1] == []


def is_public(dotted):
    """Whether each module on the way offers the next name: `graphgrad.extend.Program`."""
    thing = graphgrad
    for name in dotted.split(".")[1:]:
        if isinstance(thing, ModuleType) and name not in dir(thing):
            return False
        thing = getattr(thing, name)
    return True


def test_tf1_is_written_with_public_names_alone():
    """It could be a package of its own: what it has of graphgrad, anybody has."""
    wrong = []
    for path in [path for path in files() if part(path) == "tf1"]:
        for name in [*(name for name, *_ in imports(path)), *source_of(path).of_gg]:
            top = name.split(".")[0]
            fine = is_public(name) if top == "graphgrad" else top in BESIDE
            if not fine and not name.startswith("graphgrad.tf1."):
                wrong.append(f"{path.relative_to(ROOT)}: {name}")
    assert wrong == []


def test_nothing_but_its_command_imports_tf1():
    users = {
        path.relative_to(ROOT).as_posix()
        for path in files()
        for name, *_ in imports(path)
        if name.startswith("graphgrad.tf1") and part(path) != "tf1"
    }
    assert users == {"commands/tensorflow1.py"}


@pytest.mark.ci
def test_any_module_can_be_the_first_of_its_package():
    """An import runs the packages around a module first: these count as imports of it."""
    graph = nx.DiGraph()
    for path in files():
        for name, _, typing in imports(path):
            if name.split(".")[0] == "graphgrad" and not typing and part(path) != "tf1":
                target = module_of(name)
                packages = [p / "__init__.py" for p in target.parents if ROOT in p.parents]
                around = [p for p in packages if p.parent not in path.parents]
                graph.add_edges_from((path, p) for p in (target, *around) if p != path)
    graph.remove_nodes_from([ROOT / "__init__.py"])
    found = [sorted(map(str, c)) for c in nx.strongly_connected_components(graph) if len(c) > 1]
    assert found == []


def test_what_is_imported_on_first_use_points_down_or_is_said_here():
    """What stands above a floor, and the floor imports when it is first asked for."""
    above = {
        ("ir", "differentiate"),  # methods of Graph
        ("ir", "vocabulary"),  # op types by name
        ("ops", "interop"),  # what traces functions of torch
        ("ir", "inspect"),  # what notebooks ask for
        ("ops", "differentiate"),  # gradients of control flow
        ("regions", "rules"),  # rules by name
        ("compiled", "interop"),  # methods of CompiledFunction
        ("compiled", "healing"),  # heal=
    }
    found = set()
    for path in files():
        names = LATE.findall(path.read_text())
        found.update((part(path), part(module_of(name))) for name in names)
    low = {(a, b) for a, b in found if a in MAY_IMPORT and b not in (a, *MAY_IMPORT[a])}
    assert low == above


def test_no_two_classes_have_one_name():
    """Those of tf1 have TensorFlow's names."""
    where = {}
    for path in files():
        if part(path) == "tf1":
            continue
        for name in source_of(path).classes:
            where.setdefault(name, []).append(path.relative_to(ROOT).as_posix())
    found = {name: paths for name, paths in where.items() if len(paths) > 1}
    assert found == {}, "a name for each: what it is of belongs into it"


def test_optional_packages_stay_in_the_one_module_named_after_them():
    wrong = []
    for path in files():
        relative = path.relative_to(ROOT).as_posix()
        for name, _, typing in imports(path):
            top = name.split(".")[0]
            allowed = ONLY_IN.get(top, set())
            in_demo = top in DEMO and relative.startswith("demo")
            if top in OPTIONAL and relative not in allowed and not in_demo and not typing:
                wrong.append(f"{relative}: {name}")
    assert wrong == []


def defined():
    """Every name that graphgrad defines, those of modules and folders too."""
    names = {part for path in files() for part in path.relative_to(ROOT).with_suffix("").parts}
    return names.union(*(source_of(path).defined for path in files()))


DOCS = Path(__file__).parent.parent / "docs"
TOUR, WORDS = ((DOCS / f"{name}.md").read_text() for name in ("architecture", "words"))


@pytest.mark.parametrize("text", [TOUR, WORDS], ids=["architecture", "words"])
def test_every_file_that_the_documentation_of_the_house_names_is_there(text):
    """By its path, or by the end of it."""
    top = ROOT.parent
    paths = [*files(), *(top / "tests").glob("*.py")]
    paths = {f"/{p.relative_to(top).as_posix()}" for p in paths}
    paths |= {f"{path.rpartition('/')[0]}/" for path in paths}
    names = re.findall(r"`([\w/]+\.py|[\w/]+/)`", text)
    assert [n for n in names if not any(path.endswith(f"/{n}") for path in paths)] == []


def test_every_function_that_the_tour_names_is_there():
    tour = TOUR.partition("## The tour")[2].partition("## Decisions")[0]
    names = re.findall(r"`(?:gg\.)?([A-Za-z_]+)(?:\.[A-Za-z_]+)*`", tour)
    assert set(names) - defined() - {"with", "dy"} == set()


def test_names_say_what_things_are():
    """Not that they were found: in at most 3 % of all functions is a local named so."""
    counts = [source_of(path).functions for path in files()]
    functions, named = map(sum, zip(*counts, strict=True))
    assert named <= 0.03 * functions
