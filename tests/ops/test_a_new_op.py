"""An op from elsewhere is one class: the one of CONTRIBUTING.md, under every law and transform."""

import copy
import importlib
import pickle
import re
import sys
import warnings
from inspect import unwrap
from pathlib import Path

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.inspect.flops import flops_of
from graphgrad.ir.op import OP_TYPES
from graphgrad.ir.program import Program
from graphgrad.lower.decompose import decompose
from graphgrad.ops.base import apply

from ..laws import test_backends as backends
from ..laws import test_facts as facts
from ..laws import test_gradients as gradients
from ..laws import test_linearity as linearity
from ..laws import test_types as types
from ..laws import test_vmap as vmap

GUIDE = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
BY_OP = [
    types.test_the_executed_type_is_the_promised_type,
    types.test_layouts_do_not_matter,
    types.test_unknown_lengths_give_the_same_values,
    gradients.test_gradients_with_unknown_lengths_are_the_same,
    vmap.test_vmap_of_an_op_is_a_few_nodes_and_no_loop,
    vmap.test_vmap_over_as_many_examples_as_there_are_when_run,
    vmap.test_vmap_is_a_loop_over_examples,
    vmap.test_forward_and_reverse_mode_agree_under_vmap,
    backends.test_the_checking_backend_finds_nothing,
    facts.test_what_it_makes_is_in_its_range,
    facts.test_an_alias_is_a_view,
    facts.test_its_parts_compute_what_it_does,
]


@pytest.fixture(scope="module")
def new(tmp_path_factory):
    """The module of a package of somebody else's."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (example,) = [b for b in _blocks() if "class Centred(Op)" in b]
    (folder / "centred_op.py").write_text(example)
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module("centred_op")
    finally:
        sys.path.remove(str(folder))
        del sys.modules["centred_op"], OP_TYPES["Centred"]


def _blocks():
    return re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)


def samples(new):
    return list(new.Centred.samples(np.random.default_rng(0)))


@pytest.mark.parametrize("law", BY_OP, ids=[law.__name__ for law in BY_OP])
def test_a_law_holds_for_it(new, law):
    for op, arrays in samples(new):
        unwrap(law)(op, arrays)


@pytest.mark.parametrize("order", [1, 2])
def test_its_gradient_is_right(new, order):
    op, arrays = samples(new)[0]
    unwrap(gradients.test_vjp_matches_central_differences)(op, arrays, order)


@pytest.mark.parametrize("known", [True, False])
def test_it_is_linear_and_so_is_its_gradient(new, known):
    op, arrays = samples(new)[0]
    unwrap(linearity.test_an_op_is_linear_where_it_says_so)(op, arrays, [0])
    unwrap(linearity.test_the_gradient_of_a_linear_op_is_its_adjoint)(op, arrays, [0])
    unwrap(linearity.test_the_gradient_of_every_op_is_linear_by_its_structure)(op, arrays, known)
    unwrap(linearity.test_forward_and_reverse_mode_agree)(op, arrays, known)


@pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])
def test_every_backend_runs_it_with_its_gradient(new, backend):
    if backend != "numpy":
        pytest.importorskip({"llvm": "llvmlite"}.get(backend, backend))
    with gg.Graph():
        x = gg.placeholder((4, 5))
        y = gg.sum(gg.exp(new.centred(x * x)))
        f = gg.compile(x, [y, gg.gradients(y, x)], backend=backend)
    a = np.random.default_rng(0).normal(size=(4, 5))
    e = np.exp(a * a - (a * a).mean(-1, keepdims=True))
    value, dx = f(a)
    np.testing.assert_allclose(value, e.sum(), rtol=1e-12)
    np.testing.assert_allclose(dx, 2 * a * (e - e.mean(-1, keepdims=True)), rtol=1e-10, atol=1e-12)


def test_vmap_of_it_is_one_node_and_no_warning(new):
    with gg.Graph() as g, warnings.catch_warnings():
        warnings.simplefilter("error")
        gg.vmap(lambda x: new.centred(x, 0))(gg.placeholder((7, 4, 5)))
    assert [n.op for n in g.nodes if n.type == "Centred"] == [new.Centred(1)]


def test_it_is_copied_and_pickled_with_its_graph(new):
    a = np.random.default_rng(0).normal(size=(4, 5))
    with gg.Graph() as g:
        x = gg.placeholder((4, 5), name="x")
        with gg.override_gradient(lambda site, dy: [3 * d for d in site.default(dy)]):
            y = gg.identity(new.centred(x), name="y")
        wanted = gg.compile(x, gg.gradients(y, x, a))(a)
    for other in (copy.deepcopy(g), g.copy()):
        (node,) = [n for n in other.nodes if n.type == "Centred"]
        assert node.op is new.Centred(1)
        x, y = (next(n for n in other.nodes if n.name == name).outputs[0] for name in "xy")
        with other:
            np.testing.assert_array_equal(gg.compile(x, gg.gradients(y, x, a))(a), wanted)
    assert pickle.loads(pickle.dumps(new.Centred(1))) is new.Centred(1)


def test_it_is_printed_and_its_operations_are_counted(new):
    with gg.Graph() as g:
        y = new.centred(gg.placeholder((4, 5)))
    assert repr(y.node.op) == "Centred(axis=1)"
    assert "Centred" in gg.to_dot(g)
    assert flops_of(y.node, lambda d: d) == 40
    assert gg.summary(g).ops["Centred"].flops == 40


def test_it_is_taken_apart_but_not_what_has_another_kernel(new):
    class Doubled(new.Centred):
        def kernel(self, xp, x):
            return 2 * super().kernel(xp, x)

    a = np.random.default_rng(0).normal(size=(4, 5))
    try:
        for op, parts in ((new.Centred(1), ["ReduceMean", "Subtract"]), (Doubled(1), ["Doubled"])):
            with gg.Graph():
                x = gg.placeholder((4, 5))
                y = apply(op, x)
            assert [n.type for n in decompose(Program([x], [y])).nodes] == parts
            for f in (gg.compile(x, y, backend="numpy"), gg.compile(x, y)):
                np.testing.assert_allclose(f(a), op.kernel(np, a), rtol=1e-12, atol=1e-12)
    finally:
        del OP_TYPES["Doubled"]


def test_an_attribute_cannot_hide_a_method_of_every_op():
    with pytest.raises(TypeError, match=r"Hidden has attributes named as methods.*'batch'"):

        class Hidden(gg.Op):
            batch: int
