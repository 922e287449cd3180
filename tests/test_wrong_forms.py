"""Forms that look right and are not: each is refused, and the words say where, what and what to do.

All of them name the user's own file and line.
"""

import math
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import graphgrad as gg

HERE = Path(__file__).name


@pytest.fixture(autouse=True)
def graph():
    with gg.Graph() as g:
        yield g


@contextmanager
def refused(kind, *said):
    """The block raises an error of this kind whose words, with notes, have all of these parts."""
    with pytest.raises(kind) as caught:
        yield
    error = caught.value
    words = "\n".join([str(error), *getattr(error, "__notes__", [])])
    for part in (f"{HERE}:", *said):
        assert part in words, f"{part!r} is not in {words!r}"


def scalar(name="x"):
    return gg.placeholder((), name=name)


def vector(length=3, dtype="float64"):
    return gg.placeholder((length,), dtype, name="x")


def line_after(text):
    """The place, `file.py:12`, of the first line of this file with the text, as errors say it."""
    lines = Path(__file__).read_text().splitlines()
    return f"{HERE}:{next(i for i, line in enumerate(lines, 1) if text in line)}"


# --- what a custom_gradient returns ------------------------------------------------------------


def test_results_that_are_not_grouped():
    @gg.custom_gradient
    def complex_op(x, y):
        def grad(dz, dw):
            return dz * y, dz * x + dw * 2.0 * y

        return x * y, gg.square(y), grad

    with refused(gg.GradientError, "complex_op", "3 values", "`return (z, w), grad_fn`"):
        complex_op(scalar("x"), scalar("y"))


def test_grouped_results_come_without_the_gradient_function():
    @gg.custom_gradient
    def complex_op(x, y):
        return (x * y, gg.square(y)), lambda dz, dw: (dz * y, dz * x + dw * 2.0 * y)

    result = complex_op(scalar("x"), scalar("y"))
    assert len(result) == 2
    with pytest.raises(ValueError, match="expected 3, got 2"):
        _z, _w, _ = result


@pytest.mark.parametrize(
    ("made_of", "said"),
    [
        (lambda x: x * x, "got <Multiply"),
        (lambda x: None, "got None"),
        (lambda x: (x * x, 2.0 * x), "a function of the gradients of the results"),
        (lambda x: (3.0, lambda dy: dy), "3.0 among its results"),
    ],
)
def test_no_pair_of_tensors_and_a_gradient_function(made_of, said):
    with refused(gg.GradientError, said):
        gg.custom_gradient(made_of)(scalar())


def test_a_tensor_by_keyword_only():
    @gg.custom_gradient
    def f(*, x):
        return x * x, lambda dy: dy

    with refused(gg.GradientError, "'x'", "positional"):
        f(x=scalar())


# --- what a gradient function returns ----------------------------------------------------------


def test_a_forgotten_return_in_a_gradient_function():
    @gg.custom_gradient
    def forgetful(x):
        def grad(dy):
            dy * 2.0 * x

        return x * x, grad

    x = scalar()
    y = forgetful(x)
    with refused(gg.GradientError, "'forgetful'", "returned None", "is a `return` missing?"):
        gg.gradients(y, x)


def test_a_forgotten_return_in_a_rule():
    def forgetful(site, dy):
        dy * 2.0

    x = scalar()
    with gg.override_gradient(forgetful):
        y = gg.exp(x)
    with refused(gg.GradientError, "'forgetful'", line_after("def forgetful(site"), "`return`"):
        gg.gradients(y, x)


@pytest.mark.parametrize(
    ("grad", "got"),
    [
        (lambda dy: dy, "got float64[]"),
        (lambda dy: gg.broadcast_to(dy, (4,)), "got float64[4]"),
        (lambda dy: np.ones(2), "array of shape (2,)"),
    ],
)
def test_a_gradient_of_the_wrong_shape(grad, got):
    x = vector(3)
    y = gg.custom_gradient(lambda x: (gg.sum(x * x), grad))(x)
    with refused(gg.GradientError, "input 0, x:0", "float64[3]", got):
        gg.gradients(y, x)


def test_a_wrong_shape_that_shows_only_when_it_runs():
    x = gg.placeholder((None,), name="x")
    y = gg.custom_gradient(lambda x: (x * x, lambda dy: gg.concat([dy, dy])))(x)
    dx = gg.gradients(y, x)
    with refused(gg.ExecutionError, "gradient", "(3,)", "(6,)"):
        gg.evaluate(dx, {x: np.ones(3)})


@pytest.mark.parametrize("wrong", ["float64", "float16", "int32"])
def test_a_gradient_of_the_wrong_dtype(wrong):
    x = vector(3, "float32")
    y = gg.custom_gradient(lambda x: (x * x, lambda dy: dy.astype(wrong)))(x)
    with refused(gg.GradientError, "float32[3]", f"got {wrong}[3]", ".astype('float32')"):
        gg.gradients(y, x)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_the_wrong_number_of_gradients(count):
    x, y = scalar("x"), scalar("y")
    z = gg.custom_gradient(lambda x, y: (x * y, lambda dz: (dz,) * count))(x, y)
    with refused(gg.GradientError, f"returned {count} gradient", "for 2 inputs", "x:0", "y:0"):
        gg.gradients(z, [x, y])


def test_a_generator():
    def grad(dy):
        yield dy

    x = scalar()
    y = gg.custom_gradient(lambda x: (x * x, grad))(x)
    with refused(gg.GradientError, "generator"):
        gg.gradients(y, x)


# --- what a gradient function takes ------------------------------------------------------------


@pytest.mark.parametrize("grad", [lambda: 1.0, lambda dz, dw: dz])
def test_a_gradient_function_of_the_wrong_arity(grad):
    x = scalar()
    y = gg.custom_gradient(lambda x: (x * x, grad))(x)
    with refused((TypeError, gg.GradientError), "gradient rule"):
        gg.gradients(y, x)


def test_a_gradient_function_that_forgets_the_second_result():
    x = scalar()
    z, _w = gg.custom_gradient(lambda x: ((x * x, x + 1.0), lambda dz: dz))(x)
    with refused((TypeError, gg.GradientError), "gradient rule"):
        gg.gradients(z, x)


def test_a_rule_without_the_site():
    def siteless(dy):
        return dy

    x = scalar()
    with gg.override_gradient(siteless):
        y = gg.exp(x)
    with refused(gg.GradientError, "'siteless'", "siteless(dy)", "the site and 1", y.name):
        gg.gradients(y, x)


def test_a_rule_for_more_outputs_than_there_are():
    x = scalar()
    with gg.override_gradient(lambda site, da, db: da):
        y = gg.exp(x)
    with refused(gg.GradientError, "one per output", y.name):
        gg.gradients(y, x)


def test_an_error_within_a_rule_keeps_its_type_and_says_whose_it_is():
    def confused(site, dy):
        return dy @ site.inputs[0]

    x = gg.placeholder((2, 3), name="x")
    with gg.override_gradient(confused):
        y = gg.exp(x)
    where = line_after("dy @ site.inputs[0]")
    with refused(gg.ShapeError, "inner lengths", where, "'confused'", "x:0"):
        gg.gradients(y, x)


# --- variables ---------------------------------------------------------------------------------


def test_a_variable_for_which_the_gradient_function_says_nothing():
    w = gg.variable(2.0, name="w")
    x = scalar()
    y = gg.custom_gradient(lambda x: (x * w, lambda dy: dy * w))(x)
    assert gg.evaluate(gg.gradients(y, x)) == 2  # nobody asks for w: no harm
    with refused(gg.GradientError, "w:0", "`variables`"):
        gg.gradients(y, [x, w])


@pytest.mark.parametrize(
    ("grad", "said"),
    [
        (lambda dy, variables=None: dy, "a pair (dxs, dvars)"),
        (lambda dy, variables=None: (dy, [dy]), "1 gradient for the 2 variables v:0"),
    ],
)
def test_the_wrong_gradients_of_variables(grad, said):
    v, w = gg.variable(2.0, name="v"), gg.variable(3.0, name="w")
    x = scalar()
    y = gg.custom_gradient(lambda x: (x * v * w, grad))(x)
    with refused(gg.GradientError, said):
        gg.gradients(y, x)


def test_a_function_without_variables_may_speak_the_protocol_of_variables():
    x = scalar()
    y = gg.custom_gradient(lambda x: (x * x, lambda dy, variables=None: (5.0 * dy, [])))(x)
    assert gg.evaluate(gg.gradients(y, x)) == 5


# --- choosing ----------------------------------------------------------------------------------


def test_cond_of_a_vector_points_to_where():
    x = vector(3)
    with refused(gg.ShapeError, "a single bool", "bool[3]", "gg.where(condition, x, y)"):
        gg.cond(x > 0, lambda: x * 2, lambda: x)


def test_cond_of_a_number():
    x = scalar()
    with refused(gg.DTypeError, "takes a bool", "float64[]"):
        gg.cond(x, lambda: x * 2, lambda: x)


def test_cond_of_values_instead_of_functions():
    x = scalar()
    with refused(TypeError, "functions without arguments"):
        gg.cond(x > 0, x * 2, x)


@pytest.mark.parametrize("other", [lambda: None, lambda: ()])
def test_cond_with_branches_that_differ(other):
    x = scalar()
    with refused(gg.ShapeError, "same structure"):
        gg.cond(x > 0, lambda: x, other)


def test_a_tensor_as_a_python_condition():
    x = scalar()
    with refused(gg.SymbolicError, "truth of a tensor", "gg.where or gg.cond"):
        x * 2 if x > 0 else x
    with refused(gg.SymbolicError, "truth of a tensor"):
        0 < x < 1  # noqa: B015
    with refused(gg.SymbolicError, "truth of a tensor"):
        x > 0 and x < 1
    with refused(gg.SymbolicError, "truth of a tensor"):
        not x


# --- values that are not there yet ---------------------------------------------------------------


@pytest.mark.parametrize(
    "use", [float, int, complex, math.exp, np.asarray, lambda t: np.array([t, t])]
)
def test_a_tensor_as_a_value(use):
    with refused(gg.SymbolicError, "x:0", "symbolic", "gg.evaluate"):
        use(scalar())


def test_a_tensor_is_not_changed():
    x = vector(3)
    with refused(gg.SymbolicError, "in place", "gg.where"):
        x[0] = 1.0
    with refused(gg.SymbolicError, "unknown length"):
        list(vector(None))


def test_a_placeholder_that_is_not_fed():
    x, y = scalar("x"), scalar("y")
    with refused(gg.GraphError, "y:0", "inputs"):
        gg.compile(x, x * y)
    with refused(gg.GraphError, "x:0"):
        gg.evaluate(x * 2.0)


# --- what gradients() is asked -------------------------------------------------------------------


def test_gradients_of_integers():
    n = gg.placeholder((), "int64", name="n")
    with refused(gg.DTypeError, "n:0", "int64[]", "astype('float64')"):
        gg.gradients(n * 2.0, n)
    with refused(gg.DTypeError, "ys", "bool[]"):
        gg.gradients(scalar() > 0, scalar("z"))


def test_a_seed_of_the_wrong_shape():
    x = vector(3)
    y = x * x
    with refused(gg.GradientError, y.name, "float64[3]", "float64[]"):
        gg.gradients(y, x, grad_ys=1.0)


def test_what_is_no_tensor():
    x = scalar()
    with pytest.raises(gg.GradientError, match=r"xs\[1\] is 3.0, not a tensor"):
        gg.gradients(x * x, [x, 3.0])


def test_a_tensor_that_a_region_hides():
    x = scalar()
    with gg.override_gradient(lambda site, dy: dy):
        h = gg.exp(x)
        y = gg.sin(h)
    with refused(gg.GradientError, h.name, "hidden", "declare"):
        gg.gradients(y, h)


def test_tensors_of_two_graphs():
    x = scalar()
    with gg.Graph("other"):
        y = scalar("y")
        with refused(gg.GraphError, "'graph'", "'other'"):
            y * x


# --- names ---------------------------------------------------------------------------------------


def test_a_misspelt_rule():
    with gg.temporary_gradient("soft_clip", lambda site, dy: dy):
        with refused(gg.UnknownGradientError, "'soft_clpi'", "Did you mean 'soft_clip'?"):
            gg.override_gradient("soft_clpi")
        with refused(gg.UnknownGradientError, "Did you mean 'soft_clip'?"):
            gg.gradient_override_map({"Round": "soft_clp"})
        x = scalar()
        y = gg.exp(x)
        with pytest.raises(gg.UnknownGradientError, match="Did you mean 'soft_clip'"):
            gg.gradients(y, x, overrides={"Exp": "softclip"})


def test_a_misspelt_op_type():
    with refused(gg.RegionError, "'Matmul'", "Did you mean 'MatMul'?"):
        gg.gradient_override_map({"Matmul": "Identity"})
    with refused(gg.RegionError, "no op type 'clip_by_value'"):
        gg.gradient_override_map({"clip_by_value": "Identity"})


def test_an_override_that_overrides_nothing():
    x = scalar()
    gg.round(x)
    too_late = gg.gradient_override_map({"Round": "Identity"})
    with refused(gg.RegionError, "no node of type 'Round'"), too_late:
        gg.floor(x)
    with refused(gg.RegionError, "built no node"), gg.override_gradient("Identity"):
        pass


def test_a_name_that_is_taken():
    @gg.register_gradient("taken")
    def first(site, dy):
        return dy

    def second(site, dy):
        return dy

    try:
        here = line_after("@gg.register_" + 'gradient("taken")')
        with refused(gg.DuplicateGradientError, "'taken'", f"first at {here}", "replace=True"):
            gg.register_gradient("taken")(second)
    finally:
        gg.unregister_gradient("taken")


def test_a_registration_without_a_name():
    with pytest.raises(TypeError, match=r'@register_gradient\("name"\)'):
        gg.register_gradient(lambda site, dy: dy)
