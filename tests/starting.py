"""What is touched first after `import graphgrad`: `python -m tests.starting` tries it all.

Each function here runs in a fork of a process that has imported graphgrad and nothing else of it.
Ends with 0 where none fails.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import os
import pickle
import pkgutil
import sys
import threading
import traceback
import warnings
from importlib.util import find_spec

import numpy as np

import graphgrad as gg

OPTIONAL = ("demo", "bench.rich_table", "interop.torch_modules", "interop.torch_trace")
OPTIONAL += ("execute.jax", "execute.llvm", "interop.jax_calls", "interop.jax_export")
OPTIONAL += ("interop.jax_primitives", "interop.torch_operators", "tf1")
"""Modules that need other packages, and those of TensorFlow's ops."""


def graph():
    g = gg.Graph()
    with g:
        gg.identity(gg.exp(gg.placeholder((3,), name="x")), name="y")
    return g


# --- the graph ----------------------------------------------------------------------------------


def copies():
    for made in (graph().copy(), copy.copy(graph()), copy.deepcopy(graph())):
        assert [n.name for n in made.nodes] == ["x", "Exp_1", "y"]


def subgraph():
    g = graph()
    part = g.subgraph([g.tensor("x:0")], [g.tensor("y:0")])
    assert [n.type for n in part.nodes] == ["Placeholder", "Exp", "Identity"]


def pickling():
    made = pickle.loads(pickle.dumps(graph()))
    assert [n.name for n in made.nodes] == ["x", "Exp_1", "y"]


def unpickling():
    g = pickle.loads(bytes.fromhex(os.environ["CHECKPOINTED"]))
    gg.gradients(g.tensor("y:0"), g.tensor("x:0"))
    assert [n.type for n in g.nodes].count("Exp") == 2


def marks():
    g = graph()
    (mark,) = g.mark(gg.select.op("Exp"), lambda site, dy: 3 * dy)
    assert gg.gradients(g.tensor("y:0"), g.tensor("x:0")).node.type == "Multiply"
    assert g.unmark(mark) == [mark]


def maps():
    for name in ("JaxFunction", "TorchCall", "PerExample", "BesselI", "Default"):
        with gg.gradient_override_map({name: lambda site, dy: dy}, allow_empty=True):
            pass


def pictures():
    g = graph()
    for shown in (g, g.tensor("x:0"), g.nodes[0]):
        assert "graphgrad" in shown._repr_html_()
        assert set(shown._repr_mimebundle_(include=["text/plain"])) == {"text/plain"}


# --- gradients ----------------------------------------------------------------------------------


def gradient(build):
    """The op type of dy/dx at 2."""
    x = gg.constant(2.0)
    return gg.gradients(build(x), x).node.type


def gradient_of_a_choice():
    assert gradient(lambda x: gg.cond(x > 1.0, lambda: x * x, lambda: x)) == "Cond"


def gradient_of_a_scan():
    assert gradient(lambda x: gg.scan(lambda c, r: (c * r, c), x, gg.ones(3))[0]) == "Scan"


def gradient_of_a_while():
    assert gradient(lambda x: gg.while_loop(lambda c: c < 9.0, lambda c: c * c, x)) == "Scan"


def gradient_of_an_op_for_each_example():
    op = gg.op_types()["PerExample"](gg.op_types()["Exp"](), (True,))
    assert op.vjp.__module__ == "graphgrad.differentiate.vmap.vmap"


def transforms():
    x = gg.constant(3.0)
    assert gg.jvp(x * x, x, 1.0).shape == ()
    assert gg.vmap(gg.exp)(gg.zeros((2, 3))).node.type == "Exp"


# --- rules by name ------------------------------------------------------------------------------


def said(kind, call, *args):
    """The text of the error that a call raises."""
    try:
        call(*args)
    except kind as error:
        return str(error)
    raise AssertionError(f"{call} raises no {kind}")


def a_rule_of_the_library_by_its_name():
    assert "mean gg.rules.ste()?" in said(gg.UnknownGradientError, gg.override_gradient, "ste")


def the_library_itself_as_a_rule():
    assert "makes a gradient rule" in said(gg.GradientError, gg.override_gradient, gg.rules.ste)


def a_name_that_is_taken():
    for name in ("gg.rules.checkpoint", "JaxFunction"):
        said(gg.DuplicateGradientError, gg.register_gradient(name), lambda site, dy: dy)


def an_op_type_that_is_taken():
    assert "two op types" in said(ValueError, type, "BesselI", (gg.Op,), {"__module__": "user"})


def a_name_of_an_op_type():
    with gg.Graph():
        assert "is reserved" in said(gg.GraphError, gg.placeholder, (), None, "Erf_1")
        first, second = (gg.placeholder((), name="Erf") for _ in range(2))
        assert (first.node.name, second.node.name) == ("Erf", "Erf__1")


def names_of_users():
    """They import no op types."""
    with gg.Graph():
        for _ in range(2):
            gg.placeholder((), name="x_1")
        gg.register_gradient("clip")(lambda site, dy: dy)
        with gg.override_gradient("clip", allow_empty=True):
            pass
    assert "graphgrad.vocabulary" not in sys.modules


def op_types():
    assert {"BesselI", "JaxFunction", "TorchCall", "Unread", "Fused"} <= set(gg.op_types())


# --- running and files --------------------------------------------------------------------------


def backends():
    for backend, package in (("numpy", "numpy"), ("llvm", "llvmlite"), ("jax", "jax")):
        if find_spec(package) is None:
            continue
        x = gg.placeholder((2,))
        f = gg.compile(x, gg.exp(x), backend=backend)
        assert np.allclose(f([0.0, 1.0]), [1.0, np.e])


def beside_jax():
    x, w = gg.placeholder((2,)), gg.variable(1.0, name="w")
    f = gg.compile(x, w * x)
    assert f.state_tree() == {"w": 1.0}
    f.commit({"w": np.array(3.0)})
    assert f([1.0, 2.0])[1] == 6
    for method in (f.as_jax, f.export_stablehlo):
        assert method.__module__.startswith("graphgrad.interop.")


def loading():
    file = gg.load(os.environ["FILE"])
    f = gg.compile(file.graph.tensor("x:0"), file.graph.tensor("y:0"))
    assert np.allclose(f([0.0]), 1.0)


def from_two_threads():
    values = []

    def run(n):
        with gg.Graph():
            x = gg.placeholder((n,))
            values.append(gg.compile(x, gg.sum(gg.exp(x)))(np.zeros(n)))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(float, values)) == [1, 2, 3, 4]


# --- names --------------------------------------------------------------------------------------


def functions_of_numpy():
    x = gg.constant([1.0, 2.0])
    for t in (np.fft.fft(x), np.linalg.norm(x), np.median(x), np.vstack([x, x])):
        assert isinstance(t, gg.Tensor)


def a_name_that_is_not_there():
    for name, answer in [("relu", "gg.nn.relu"), ("nan_guard", "gg.rules.nan_guard or gg.debug.")]:
        assert answer in said(AttributeError, getattr, gg, name)
    assert not hasattr(gg, "__wrapped__")
    assert not hasattr(gg, "no_such_name")
    assert not hasattr(gg, "no.such.name")


def names_are_looked_up_once():
    assert "evaluate" not in vars(gg)
    first = gg.evaluate
    assert vars(gg)["evaluate"] is first


# --- everything ---------------------------------------------------------------------------------


def every_module():
    """Imported with a graph and a scope open, errors of NumPy raised, and warnings errors."""
    types = sorted(gg.op_types())
    assert all(name[0].isupper() for name in types)
    with (
        gg.Graph() as g,
        gg.override_gradient(lambda site, dy: dy, allow_empty=True),
        np.errstate(all="raise"),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        for module in pkgutil.walk_packages(gg.__path__, "graphgrad."):
            name = module.name.removeprefix("graphgrad.")
            if not name.startswith(OPTIONAL) and "__main__" not in name:
                importlib.import_module(module.name)
        exec("from graphgrad import *", {})
        assert all(hasattr(gg, name) for name in dir(gg))
    assert g.nodes == []
    assert sorted(gg.op_types()) == types


def every_lazy_method():
    for module in [*sys.modules.values()]:
        for cls in [c for c in vars(module).values() if inspect.isclass(c)]:
            for name, member in [*vars(cls).items()]:
                if type(member).__name__ == "LazyMethod":
                    assert callable(getattr(cls, name))
                    assert vars(cls)[name] is not member, f"{cls}.{name}"


SCENES = [f for f in vars().values() if inspect.isfunction(f) and f.__module__ == __name__]
SCENES = [f for f in SCENES if not inspect.signature(f).parameters and f is not graph]


def failed(scene) -> int:
    """The exit status of a fork that runs it."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        scene()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    sys.exit(sum(map(failed, SCENES)))
