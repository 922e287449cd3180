"""The public face: what is offered, under which names, and with which types."""

import builtins
import importlib
import inspect
import pkgutil
import re
import runpy
import sys
import types
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest

import graphgrad as gg

from .each import together

ROOT = Path(gg.__file__).parent
USER = Path(__file__).parent / "typed" / "user.py"
MODULES = (
    "graphgrad",
    "graphgrad.debug",
    "graphgrad.distributed",
    "graphgrad.extend",
    "graphgrad.fft",
    "graphgrad.initializers",
    "graphgrad.interop",
    "graphgrad.linalg",
    "graphgrad.nn",
    "graphgrad.onnx",
    "graphgrad.optimizers",
    "graphgrad.random",
    "graphgrad.rules",
    "graphgrad.special",
    "graphgrad.testing",
    "graphgrad.training",
)
TENSORFLOWS = (
    "graphgrad.tf1",
    "graphgrad.tf1.contrib",
    "graphgrad.tf1.python.framework",
    "graphgrad.tf1.python.ops",
)
"""Modules whose names are TensorFlow's."""

MADE_BY_GRAPHGRAD = {
    gg.CompiledFunction,
    gg.Difference,
    gg.LoopTime,
    gg.Profile,
    gg.Region,
    gg.Selection,
    gg.Site,
    gg.Summary,
    gg.onnx.OnnxModel,
}
"""Classes that nobody makes: what their __init__ takes is no part of the face."""

NAMES = """
Graph default_graph reset_default_graph placeholder constant variable name_scope Tensor Node
exp sum matmul where concat einsum outer nansum pad linalg special nn random
special.erf special.gammaln special.expit special.logsumexp special.xlogy
nn.relu nn.gelu nn.softmax nn.log_softmax nn.conv nn.max_pool nn.batch_norm nn.layer_norm
nn.cross_entropy nn.dropout cond
register_gradient RegisterGradient override_gradient gradient_override_map custom_gradient
select.op select.name select.where select.nodes select.between select.scope select.pattern
select.rule override NO_GRAD DEFAULT is_zero sum_to stop_gradient zero_gradient undefined_gradient
is_registered unregister_gradient registered_gradients temporary_gradient get_gradient
gradients vjp jvp jacobian hessian hvp check_gradient explain lint value_and_grad vmap
compile Session evaluate State optimizers initializers function import_graph debug.print
py_function optimizers.SGD optimizers.Adam optimizers.clip_by_global_norm
Graph.tensor Graph.node Graph.find Graph.to_networkx Graph.mark Graph.unmark
Graph.gradient_override_map Graph.as_default Graph.copy Graph.subgraph
Tensor.shape Tensor.dtype Tensor.ndim Tensor.size Tensor.name Tensor.T Tensor.astype
Tensor.reshape Tensor.sum CompiledFunction.explain Session.run
to_dot write_dot to_svg to_html print_graph graph_diff extend
GraphGradError ShapeError DTypeError GradientError UnknownGradientError RegionError
GraphFormatError
"""
"""What users, examples and files rely on: these stay."""


def modules():
    return [importlib.import_module(name) for name in MODULES]


def offered(module):
    """The names of __all__, and those that it leaves to the builtins."""
    names = {*vars(module), *getattr(module, "_HOMES", ())}
    return set(module.__all__) | {n for n in vars(builtins) if n[0] != "_" and n in names}


@pytest.mark.parametrize("name", MODULES)
def test_dir_is_what_is_offered_and_no_more(name):
    module = importlib.import_module(name)
    assert dir(module) == sorted(offered(module))
    assert len(module.__all__) == len(set(module.__all__))
    assert [n for n in dir(module) if not hasattr(module, n)] == []
    inner = [n for n in dir(module) if isinstance(getattr(module, n), types.ModuleType)]
    assert [n for n in inner if f"{name}.{n}" not in MODULES] == []


def test_dir_of_tf1_is_what_it_offers_and_all_of_it_is_there():
    """Its names are TensorFlow's, so the other rules for names do not hold of it."""
    tf = importlib.import_module("graphgrad.tf1")
    assert dir(tf) == sorted(offered(tf))
    assert [n for n in dir(tf) if "which is not there" in repr(getattr(tf, n))] == []


def test_what_is_not_offered_is_no_attribute_but_for_the_folders():
    rest = {n: v for n, v in vars(gg).items() if n not in dir(gg) and not n.startswith("_")}
    assert [n for n, v in rest.items() if not isinstance(v, types.ModuleType)] == []


@pytest.mark.parametrize("name", MODULES)
def test_import_star_shadows_no_builtin(name):
    space = {}
    exec(f"from {name} import *", space)
    assert set(space) & set(vars(builtins)) <= {"__builtins__"}
    assert "Tensor" in space or name != "graphgrad"


def test_a_public_module_is_imported_by_the_name_it_is_reached_by():
    for module, name in zip(modules(), MODULES, strict=True):
        parent, _, last = name.rpartition(".")
        assert not parent or getattr(importlib.import_module(parent), last) is module


def test_no_function_or_class_of_a_package_has_the_name_of_a_module_in_it():
    """Type checkers and imports may take one for the other; the names of tf1 are TensorFlow's."""
    hidden = []
    for init in ROOT.rglob("__init__.py"):
        name = ".".join(("graphgrad", *init.parent.relative_to(ROOT).parts))
        if name.startswith("graphgrad.tf1"):
            continue
        package = importlib.import_module(name)
        modules = [module.name for module in pkgutil.iter_modules(package.__path__)]
        members = [(m, vars(package)[m]) for m in modules if m in vars(package)]
        hidden += [f"{name}.{m}" for m, o in members if not isinstance(o, types.ModuleType)]
    assert hidden == []


def test_compile_and_function_are_functions_and_no_modules():
    for name in ("compile", "function"):
        assert inspect.isfunction(getattr(gg, name))
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(f"graphgrad.{name}")


@together([(name,) for name in NAMES.split()])
def test_what_users_rely_on_is_there(name):
    found = gg
    for part in name.split("."):
        found = getattr(found, part)


# --- types --------------------------------------------------------------------------------------


def functions(thing):
    """What of a public thing is called: itself, or the public methods of a class."""
    if inspect.isclass(thing):
        for name, member in inspect.getmembers(thing):
            called = member.fget if isinstance(member, property) else member
            own = name == "__init__" and thing not in MADE_BY_GRAPHGRAD
            if inspect.isfunction(called) and (own or not name.startswith("_")):
                yield called
    elif inspect.isfunction(thing):
        yield thing


def public_functions():
    for module in modules():
        for name in dir(module):
            for function in functions(getattr(module, name)):
                if function.__module__.startswith("graphgrad"):
                    yield f"{module.__name__}.{name}: {function.__qualname__}", function


def test_every_parameter_and_result_has_a_type():
    missing = []
    for name, function in public_functions():
        wanted = [*inspect.signature(function).parameters, "return"]
        first = wanted[0]
        if "." in function.__qualname__ and first in ("self", "cls", "node"):
            wanted = wanted[1:]
        missing += [f"{name}({p})" for p in wanted if p not in function.__annotations__]
    assert missing == []


def classes_in(value):
    """The classes that an annotation's name stands for: a class, or those in an alias."""
    if inspect.isclass(value):
        return {value}
    return (
        set().union(*(classes_in(part) for part in get_args(value))) if get_args(value) else set()
    )


def classes_by_name():
    """graphgrad's classes, for names that are imported for types only."""
    return {
        name: value
        for module in list(sys.modules.values())
        if getattr(module, "__name__", "").startswith("graphgrad")
        for name, value in list(vars(module).items())
        if inspect.isclass(value) and value.__module__ == module.__name__
    }


def test_every_type_that_a_signature_names_is_public():
    public = {id(getattr(m, n)) for m in modules() for n in dir(m)}
    known = classes_by_name()
    hidden = set()
    for name, function in public_functions():
        for annotation in function.__annotations__.values():
            for word in re.findall(r"[A-Za-z_]\w*", str(annotation)):
                value = inspect.unwrap(function).__globals__.get(word, known.get(word))
                for found in classes_in(value):
                    if found.__module__.startswith("graphgrad") and id(found) not in public:
                        hidden.add(f"{name} names {found.__module__}.{found.__name__}")
    assert hidden == set()


@pytest.fixture
def user(own_names):
    """What a user's file defines."""
    return SimpleNamespace(**runpy.run_path(str(USER)))


def test_what_a_user_writes_runs(user):
    losses = user.train()
    assert losses[-1] < losses[0]
    assert user.look() == []
    assert user.traced()(3.0) == 6.0


def test_a_rewrite_from_outside_fires_in_a_backend_from_outside(user):
    with gg.Graph():
        x = gg.placeholder((2,))
        y = user.scaled(user.scaled(x, 0.5), 4.0)
        z = user.scaled(x, 0.5)
    backend = user.Plainest()
    assert gg.compile(x, y, backend=backend)([1.0, -3.0]).tolist() == [2.0, -6.0]
    assert backend.fired == {"scaled_twice": 1}
    assert gg.compile(x, z, backend=backend)([1.0, -3.0]).tolist() == [0.5, -1.5]
    assert backend.fired == {"scaled_twice": 1}


def test_an_op_from_outside_is_differentiated_at_both_orders(user):
    with gg.Graph():
        x = gg.placeholder((3,))
        y = user.softsign(x, 2.0)
    gg.check_gradient(y.node, order=2)


# --- where names come from ------------------------------------------------------------------------

DOCUMENTS = [
    path
    for pattern in ("*.md", "docs/*.md", "examples/**/*.py", "tests/typed/*.py")
    for path in sorted(ROOT.parent.glob(pattern))
]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_documents_and_examples_import_what_is_public(path):
    named = re.findall(r"(?:from|import) (graphgrad(?:\.\w+)*)", path.read_text())
    assert [name for name in named if name not in MODULES + TENSORFLOWS] == []


HELPERS = {
    *("base", "batching", "documented", "families", "folding", "making", "own", "places"),
    *("scaled_bessel", "scipy_functions", "slicing", "updates"),
}
HELPERS |= {"convolution", "operands", "pooling", "reducing", "windows"}
HELPERS |= {"elementary", "onnx_loops", "onnx_places", "onnx_windows", "stepwise"}
HELPERS |= {"draws", "philox", "quantile", "rejection", "torch_arrays"}


def _dotted(path):
    return ".".join(("graphgrad", *path.relative_to(ROOT).with_suffix("").parts))


def test_no_function_of_an_op_is_forgotten():
    reached = {id(getattr(m, n)) for m in modules() for n in dir(m)}
    forgotten = [
        f"{path.stem}.{name}"
        for path in sorted((ROOT / "ops").rglob("*.py"))
        if path.stem not in HELPERS | {"__init__"}
        for module in [importlib.import_module(_dotted(path))]
        for name in getattr(module, "__all__", ())
        if inspect.isfunction(getattr(module, name)) and id(getattr(module, name)) not in reached
    ]
    assert forgotten == []
