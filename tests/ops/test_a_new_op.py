"""An op from elsewhere is one class: the one of CONTRIBUTING.md, under every law and transform."""

import contextlib
import copy
import importlib
import pickle
import re
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import extend
from graphgrad.base.errors import ExecutionError
from graphgrad.differentiate.linearity import NonLinear
from graphgrad.execute.kernels import Kernels, one_call_per_node
from graphgrad.inspect.scene.flops import flops_of
from graphgrad.ir.facts import Memory, Traits
from graphgrad.ir.op import OP_TYPES, Op
from graphgrad.ir.program import Program
from graphgrad.laws.check_op import LAWS
from graphgrad.lower.decompose import decompose
from graphgrad.ops.base import apply

GUIDE = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
PLAIN = Kernels(np)
one_at_a_time = SimpleNamespace(
    name="plain", kernels=PLAIN, compile=lambda program: one_call_per_node(program, PLAIN)
)


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


def test_every_law_holds_for_it(new):
    report = extend.check_op(new.Centred)
    assert report.ok, report
    assert {"second gradient", "linearity", "vmap", "decompose", "on llvm"} <= set(report.checked)
    assert report.samples == 2
    assert all("needs the package 'jax'" in note for note in report.notes), report.notes


BROKEN = {
    "types": {"kernel": lambda self, xp, x: xp.astype(x, "float32")},
    "layouts": {"kernel": lambda self, xp, x: 2 * np.ravel(x, "K").reshape(x.shape)},
    "gradient": {"vjp": lambda self, node, dy: (3 * dy,)},
    "second gradient": {
        "kernel": lambda self, xp, x: x * x,
        "vjp": lambda self, node, dy: (2 * dy * gg.stop_gradient(node.inputs[0]),),
    },
    "linearity": {"kernel": lambda self, xp, x: x + 1, "linear": "joint"},
    "adjoint": {"vjp": lambda self, node, dy: (dy,), "linear": "joint"},
    "linear gradient": {"vjp": lambda self, node, dy: (dy * dy,)},
    "vmap": {"batch": lambda self, batch: batch.build(op("Negative"), *batch.every())},
    "value_range": {"traits": Traits(value_range=(0.0, 1.0))},
    "idempotent or involution": {"traits": Traits(idempotent=True)},
    "view": {"memory": Memory(view=True, alias=True)},
    "decompose": {"decompose": lambda self, make: make(op("Negative"), *make.inputs)},
}


def op(name):
    return gg.op_types()[name]()


def doubled(**methods):
    """2 x, with something written wrongly."""
    right = {"kernel": lambda self, xp, x: 2 * x, "vjp": lambda self, node, dy: (2 * dy,)}
    return type("Doubled2", (extend.Unary,), {**right, **methods})


def test_a_gradient_that_is_said_to_be_none_is_held_to_differences(new):
    a, x = np.random.default_rng(0).normal(size=(2, 3)), np.ones(3)
    none = doubled(vjp=lambda self, node, dy: (extend.NO_GRAD,))
    with pytest.raises(AssertionError, match="the slope is 0 by vjp"):
        LAWS["gradient"](none(), [a])
    one_of_two = wrong(
        infer=lambda self, x, y: (x,),
        kernel=lambda self, xp, x, y: x * y,
        vjp=lambda self, node, dz: (dz * node.inputs[1], extend.NO_GRAD),
    )
    with pytest.raises(AssertionError, match=r"the slope is .* by vjp"):
        LAWS["gradient"](one_of_two, [a[0], x])


@pytest.mark.parametrize("law", BROKEN)
def test_each_law_finds_what_breaks_it(law):
    a = np.random.default_rng(0).normal(size=(2, 3))
    with pytest.raises((AssertionError, gg.GraphGradError, NonLinear)):
        LAWS[law](doubled(**BROKEN[law])(), [a])


def test_what_check_op_found_is_said_with_the_op_its_types_and_its_line():
    a = np.array([0.5, 1.5])

    class Tripled(extend.Unary):
        """3 x, where vjp says 2."""

        def kernel(self, xp, x):
            return 3 * x

        def vjp(self, node, dy):
            return (2 * dy,)

    report = extend.check_op("Tripled", [(Tripled(), [a])], backends=[])
    assert not report
    assert [f.kind for f in report.findings] == ["gradient", "second gradient"]
    with pytest.raises(gg.GraphGradError, match=r"check of Tripled, 1 sample: 2 finding") as error:
        report.raise_if_failed()
    said = (
        r"\[gradient\] test_a_new_op\.py:\d+: Tripled\(\) of float64\[2\]: the slope is .* by vjp"
    )
    assert re.search(said, str(error.value))


def test_a_loop_under_vmap_is_a_note_of_check_op():
    cls = doubled(batch=lambda self, batch: None, elementwise=False)
    report = extend.check_op(cls, [(cls(), [np.ones((2,))])], backends=[])
    assert report.ok
    assert any("one example after the other" in note for note in report.notes)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("Tanhh", "Did you mean 'Tanh'"),
        (3, "got 3"),
        ("Cond", "Cond.samples gives no"),
    ],
)
def test_check_op_says_what_it_cannot_check(given, says):
    with pytest.raises(gg.GraphGradError, match=says):
        extend.check_op(given)


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


@pytest.mark.parametrize("name", ["batch", "type", "attrs", "fields", "linear", "pure", "_types"])
def test_an_attribute_cannot_hide_a_method_or_a_fact_of_every_op(name):
    with pytest.raises(TypeError, match=rf"Hidden has attributes named as methods.*'{name}'"):
        type("Hidden", (Op,), {"__annotations__": {name: int}})
    assert "Hidden" not in OP_TYPES


def test_a_fact_may_be_annotated_as_one():
    class Annotated(Op):
        linear: ClassVar[str] = "joint"

    assert (Annotated.fields, Annotated.linear) == ((), "joint")


# --- what is written wrongly ---------------------------------------------------------------------


def wrong(**methods):
    """An op with some methods written wrongly."""
    right = {
        "infer": lambda self, *types: types,
        "kernel": lambda self, xp, *xs: tuple(x * 2 for x in xs) if len(xs) > 1 else xs[0] * 2,
        "vjp": lambda self, node, *dys: tuple(dy * 2 for dy in dys),
    }
    return type("Wrong", (Op,), {**right, **methods})()


def outputs(op, *arrays, backend="numpy", optimize=True):
    """The outputs of op(2 * arrays), and the sum of what it was given, read after it."""
    with gg.Graph():
        xs = [gg.placeholder(a.shape) for a in arrays]
        hs = [x * 2 for x in xs]
        node = apply(op, *hs).node
        wanted = [*node.outputs, gg.sum(hs[0])]
        return gg.compile(xs, wanted, backend=backend, optimize=optimize)(*arrays)


RUNS = [(b, o) for b in ("numpy", "llvm", "jax", one_at_a_time) for o in (True, False)]


@pytest.mark.parametrize(("backend", "optimize"), RUNS)
def test_what_a_kernel_returns_is_held_to_what_infer_promised_on_every_backend(backend, optimize):
    if isinstance(backend, str) and backend != "numpy":
        pytest.importorskip({"llvm": "llvmlite"}.get(backend, backend))
    a, run = np.ones((2, 3)), {"backend": backend, "optimize": optimize}
    for kernel, got in [
        (lambda self, xp, x: xp.astype(x, "float32"), r"returned float32\[2, 3\]"),
        (lambda self, xp, x: xp.sum(x, axis=0), r"returned float64\[3\]"),
        (lambda self, xp, x: None, "returned None"),
        (lambda self, xp, x: (x,), r"returned \("),
    ]:
        with pytest.raises(ExecutionError, match=rf"promised float64\[2, 3\].*{got}"):
            outputs(wrong(kernel=kernel), a, **run)
    for kernel, got in [
        (lambda self, xp, x, y: (x,), "1"),
        (lambda self, xp, x, y: (x, y, x), "3"),
        (lambda self, xp, x, y: x, r"float64\[2, 3\]"),
    ]:
        with pytest.raises(ExecutionError, match=f"has 2 outputs, its kernel returned {got}"):
            outputs(wrong(kernel=kernel), a, a, **run)
    np.testing.assert_array_equal(outputs(wrong(), a, a, **run)[1], 4 * a)


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("backend", ["numpy", "llvm", one_at_a_time])
def test_a_kernel_cannot_write_into_what_it_reads(backend, optimize):
    if backend == "llvm":
        pytest.importorskip("llvmlite")

    def kernel(self, xp, x):
        x += 1
        return x

    a = np.ones((2, 3))
    with pytest.raises(ValueError, match="read-only") as error:
        outputs(wrong(kernel=kernel), a, backend=backend, optimize=optimize)
    assert "while running Wrong_" in error.value.__notes__[0]
    with gg.Graph():
        x = gg.placeholder((2, 3))
        f = gg.compile(x, apply(wrong(kernel=kernel), x), backend=backend, optimize=optimize)
    with pytest.raises(ValueError, match="read-only"):
        f(a)
    np.testing.assert_array_equal(a, 1)


@pytest.mark.parametrize(
    ("vjp", "error", "says"),
    [
        (lambda self, node, dy: None, gg.GradientError, r"is None; Wrong\.vjp returns a tuple"),
        (lambda self, node, dy: dy, gg.GradientError, r"is <.*>; Wrong\.vjp returns a tuple"),
        (lambda self, node, dy: (dy, dy), gg.GradientError, "has 2 entries for 1 input"),
        (lambda self, node, dy: (None,), gg.GradientError, "is None; Wrong.vjp gives a tensor"),
        (lambda self, node, dy: (2.0,), gg.GradientError, "is 2.0; Wrong.vjp gives a tensor"),
        (
            lambda self, node, dy: (gg.sum(dy),),
            gg.ShapeError,
            r"is float64\[\], but the input is float64",
        ),
        (lambda self, node, dy: (gg.stack([dy, dy]),), gg.ShapeError, r"is float64\[2, 1, 3\]"),
    ],
)
def test_a_vjp_that_gives_something_else_is_an_error_that_says_what(vjp, error, says):
    with gg.Graph():
        x = gg.placeholder((1, 3))
        y = apply(wrong(vjp=vjp), x)
        with pytest.raises(error, match=says) as raised:
            gg.gradients(y, x)
    assert "test_a_new_op.py" in str(raised.value)


def test_the_vjp_of_an_op_that_broadcasts_is_summed():
    with gg.Graph():
        x = gg.placeholder((1, 3))
        op = wrong(vjp=lambda self, node, dy: (gg.concat([dy, dy]),), broadcasts=True)
        assert gg.gradients(apply(op, x), x).shape == (1, 3)


def test_what_a_vjp_or_infer_raises_gains_a_note_with_the_line():
    def fails(self, *args):
        raise KeyError("mine")

    with gg.Graph():
        x = gg.placeholder((2,))
        with pytest.raises(KeyError, match="mine") as built:
            apply(wrong(infer=fails), x)
        y = apply(wrong(vjp=fails), x)
        with pytest.raises(KeyError, match="mine") as derived:
            gg.gradients(y, x)
    assert "in Wrong() at " in built.value.__notes__[0]
    assert "in the gradient of Wrong_" in derived.value.__notes__[0]
    assert all("test_a_new_op.py" in e.value.__notes__[0] for e in (built, derived))


@pytest.mark.parametrize("how", ["map", "region", "call", "as a rule"])
def test_so_does_what_it_raises_where_a_rule_asks_for_it(how):
    def fails(self, node, dy):
        raise KeyError("mine")

    def thrice(site, dy):
        return [3 * dx for dx in site.default(dy)]

    op = wrong(vjp=fails)
    with gg.Graph():
        x = gg.placeholder((2,))
        scope, chosen, build = contextlib.nullcontext(), {}, lambda: apply(op, x)
        if how == "map":
            scope = gg.gradient_override_map({"Wrong": thrice})
        elif how == "region":
            scope = gg.override_gradient(thrice)
        elif how == "call":
            chosen = {"Wrong": thrice}
        else:
            scope, build = gg.gradient_override_map({"Sin": "Wrong"}), lambda: gg.sin(x)
        with scope:
            y = gg.square(build())
        with pytest.raises(KeyError, match="mine") as error:
            gg.gradients(y, x, overrides=chosen or None)
    note = error.value.__notes__[0]
    assert note.startswith("in the gradient of ")
    assert "test_a_new_op.py" in note


def test_apply_takes_ops_and_tensors():
    with gg.Graph():
        x = gg.placeholder((2,))
        with pytest.raises(TypeError, match=r"Wrong\(\) is applied to tensors, got 2.0; as_tensor"):
            apply(wrong(), x, 2.0)
        with pytest.raises(
            TypeError, match=r"an op with its attributes, such as Tanh\(\), got <class"
        ):
            apply(gg.op_types()["Tanh"], x)


def test_an_op_of_several_outputs_is_built_as_a_node():
    with gg.Graph():
        x = gg.placeholder((2,))
        y, z = extend.build(wrong(), (x, x)).outputs
        f = gg.compile(x, [z, gg.gradients(y, x)])
    np.testing.assert_array_equal(f([1.0, 2.0]), [[2.0, 4.0], [2.0, 2.0]])


# --- run for one example after the other ----------------------------------------------------------


def batched(op, a, backend):
    """0.5 * op(row), by vmap, for the rows of a, twice in the graph."""
    with gg.Graph():
        x = gg.placeholder(a.shape)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gg.PerformanceWarning)
            twice = [gg.vmap(lambda row: apply(op, row))(x) * 0.5 for _ in range(2)]
        return gg.compile(x, twice[0] + twice[1], backend=backend)(a)


@pytest.mark.parametrize("backend", ["numpy", "llvm", "jax", one_at_a_time])
def test_what_a_kernel_returns_is_held_to_what_was_promised_for_each_example_too(backend):
    if isinstance(backend, str) and backend != "numpy":
        pytest.importorskip({"llvm": "llvmlite"}.get(backend, backend))
    a = np.ones((4, 3))
    narrow = wrong(kernel=lambda self, xp, x: xp.astype(x, "float32"))
    with pytest.raises(ExecutionError, match=r"promised float64\[4, 3\].*returned float32"):
        batched(narrow, a, backend)
    np.testing.assert_array_equal(batched(wrong(), a, backend), 2 * a)


@pytest.mark.parametrize("backend", ["numpy", "llvm", one_at_a_time])
def test_nor_can_a_kernel_write_into_an_example(backend):
    if backend == "llvm":
        pytest.importorskip("llvmlite")

    def kernel(self, xp, x):
        x += 1
        return x

    a = np.ones((4, 3))
    with pytest.raises(ValueError, match="read-only"):
        batched(wrong(kernel=kernel), a, backend)
    np.testing.assert_array_equal(a, 1)


@pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])
def test_effects_happen_for_each_example_at_each_place_in_every_run(backend):
    if backend != "numpy":
        pytest.importorskip({"llvm": "llvmlite"}.get(backend, backend))
    ran = []

    def kernel(self, xp, x):
        ran.append(len(x))
        return x * 2

    op = wrong(kernel=kernel, pure=False)
    for _ in range(2):
        np.testing.assert_array_equal(batched(op, np.ones((4, 3)), backend), np.full((4, 3), 2))
    assert ran == [3] * 16


NOTHING = {  # law -> an op type of which it says something, and inputs of which it does not
    "decompose": ("Softmax", (1,), np.ones((0, 2))),
    "layouts": ("Full", ((2,), 1.0, np.dtype("float64"))),
    "unknown lengths": ("Tanh", (), np.array(0.5)),
    "gradient with unknown lengths": ("Tanh", (), np.array(0.5)),
    "linearity": ("Cast", (np.dtype("int64"),), np.ones(2)),
    "value_range": ("Square", (), np.arange(3)),
    "strided": ("Transpose", ((1, 0),), np.ones((0, 2))),
    "view": ("Transpose", ((),), np.array(0.5)),
}


@pytest.mark.parametrize("law", NOTHING)
def test_a_law_of_which_nothing_was_tried_is_not_checked(law):
    name, attrs, *arrays = NOTHING[law]
    cls = gg.op_types()[name]
    if law != "layouts":
        assert law in extend.check_op(cls, backends=[]).checked
    report = extend.check_op(cls, [(cls(*attrs), arrays)], backends=[])
    assert report.ok, report
    assert law not in report.checked


def test_a_law_about_what_an_op_does_not_say_is_not_checked():
    assert "decompose" not in extend.check_op("Abs", backends=[]).checked
