"""Every public parameter that is a number has a domain, and refuses what lies outside of it."""

import doctest
import inspect
import math
import re
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from unittest import mock

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.attribution.attribute import METHODS
from graphgrad.base.domains import Domain
from graphgrad.execute.loading import backends
from graphgrad.ops import demands

from .each import each, together

MODULES = (gg.rules, gg.optimizers, gg.initializers, gg.random, gg.nn, gg.training)
NUMBER = re.compile(r"\b(float|int|Rate|Schedule)\b")
TENSOR = re.compile(r"\b(float|int|Rate|TensorLike)\b")

EXAMPLES = {
    "Optimizer": "gg.optimizers.Optimizer(0.1)",
    "lrp_product": "gg.rules.lrp_product()",
    "feedback": "gg.rules.feedback()",
    "Batches": "gg.training.batches(np.arange(5), 2)",
}
"""Calls of what the example in a docstring does not call with numbers."""

LENGTHS = {"output_size", "size", "n", "depth", "window", "strides", "groups"}
LENGTHS |= {"upscale_factor", "downscale_factor", "local_window_size"}
PLACES = {"axis", "blank", "padding_idx"}
WHOLE = {"ball", "categorical", "choice", "dirichlet", "fold_in", "integers", "multinomial"}
WHOLE |= {"multivariate_normal", "orthogonal", "permutation", "seed", "shuffle", "split"}
"""Parameters that are lengths and places, and functions of integers, keys and vectors."""

OPERANDS = {"b", "inputs", "start", "x"}
MADE_HERE = {"UpdateCall", "Batches", "Conservation", "Entry", "find", "library"}


def elsewhere(module, name, parameter):
    """Whether a parameter is a length, a place, a key or an operand: other tests are about them."""
    return {
        gg.nn: parameter in LENGTHS | PLACES,
        gg.random: name in WHOLE or parameter == "seed",
        gg.rules: (parameter in OPERANDS | {"axis"} and name != "stop")
        or parameter in tensors_of(name),
    }.get(module, parameter == "shape")


def tensors_of(name):
    """The tensors that a row of the zoo takes, which have no domain of their own."""
    row = getattr(gg.rules.library().get(name), "row", None)
    return {"tensors", "x", *row.operands} if row else set()


def numbers():
    """(name, module, function, parameter) of what takes a number."""
    for module in MODULES:
        pattern = NUMBER if module in (gg.nn, gg.training) else TENSOR
        for name in module.__all__:
            function = getattr(module, name)
            if not callable(function) or name in MADE_HERE:
                continue
            for p in inspect.signature(function).parameters.values():
                if pattern.search(str(p.annotation)) and not elsewhere(module, name, p.name):
                    yield f"{module.__name__}.{name} {p.name}", module, function, p.name


def asked(module, function, parameter, value):
    """The example of a function, where a parameter of it is another value; domains asked for it."""
    name, found = function.__name__, []
    signature = inspect.signature(function)
    kind = str(signature.parameters[parameter].annotation)

    def given(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        several = kind.startswith("Sequence") or parameter == "inputs"
        bound.arguments[parameter] = (value,) if several else value
        return function(*bound.args, **bound.kwargs)

    def noted(check, domain, what, number):
        if what == parameter:
            found.append(domain)
        return check(domain, what, number)

    text = f">>> {EXAMPLES[name]}" if name in EXAMPLES else inspect.getdoc(function)
    names = {"gg": gg, "np": np}
    call, check_kind = Domain.__call__, demands._check_kind
    with (
        mock.patch.object(module, name, given),
        mock.patch.object(Domain, "__call__", lambda *a: noted(call, *a)),
        mock.patch.object(demands, "_check_kind", partial(noted, check_kind)),
        gg.Graph(),
        redirect_stdout(StringIO()),
        pytest.raises((TypeError, ValueError)) as caught,
    ):
        run_examples(text, names)
    return found, str(caught.value)


def run_examples(text, names):
    """The statements of a docstring."""
    for example in doctest.DocTestParser().get_examples(text):
        exec(compile(example.source, "example.py", "exec"), names)


def outside(domain):
    """Numbers that are not in a domain."""
    if domain.unbounded:
        return [0.5] if domain.whole else []
    found = [math.nan, *([1.5] if domain.whole else [])]
    found += [domain.low - 1] if domain.low != -math.inf else []
    found += [domain.low] if domain.open_low else []
    found += [domain.high + 1] if domain.high != math.inf else []
    found += [domain.high] if domain.open_high else []
    return found


NUMBERS = list(numbers())


@each(NUMBERS, group=lambda name: name.partition(" ")[0].rpartition(".")[0])
@pytest.mark.usefixtures("own_names")
def test_S43_a_number_has_a_domain_and_refuses_what_is_outside(module, function, parameter):
    found, said = asked(module, function, parameter, "0.1")
    assert found, f"{function.__name__} has no domain for {parameter}"
    assert f"{parameter} is {found[0]}, got" in said
    many = "Tensor" in str(inspect.signature(function).parameters[parameter].annotation)
    for value in (*outside(found[0]), True, *([] if many else [[1.0]])):
        _, said = asked(module, function, parameter, value)
        assert f"{parameter} is " in said, f"{value} gives: {said}"


OF_RANDOM = [row for row in NUMBERS if row[1] is gg.random]
NAN_BELOW_0 = {
    *(("gamma", "concentration"), ("loggamma", "concentration"), ("generalized_normal", "power")),
    *(("beta", "a"), ("beta", "b"), ("f", "df1"), ("f", "df2"), ("chisquare", "df")),
    *(("student_t", "df"), ("wald", "mean"), ("wald", "scale")),
}


def drawn(function, parameter, value):
    """What the example of a function draws where one of its parameters is an array of a value."""
    signature, found = inspect.signature(function), []

    def given(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.arguments |= {parameter: np.array([value]), "shape": (4,)}
        found.append(function(*bound.args, **bound.kwargs))
        return found[0][:, None] if function is gg.random.multinomial else found[0]

    with mock.patch.object(gg.random, function.__name__, given), gg.Graph():
        with redirect_stdout(StringIO()), np.errstate(all="ignore"):
            run_examples(inspect.getdoc(function), {"gg": gg, "np": np})
        return gg.evaluate(found[0])


@each(OF_RANDOM, group=lambda name: name[17:18])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # means of what is infinite
def test_what_elements_of_an_array_outside_of_a_domain_draw(module, function, parameter):
    """As the documentation of `gg.random` says: NaN, or -1, or the formula as it stands."""
    for value in {*outside(asked(module, function, parameter, "0.1")[0][0])} - {0, math.inf}:
        y = drawn(function, parameter, value)
        if y.dtype == bool:
            assert (y == (value > 1)).all()
        elif y.dtype.kind == "i":
            assert (y == -1).all()
        elif math.isnan(value) or (function.__name__, parameter) in NAN_BELOW_0:
            assert np.isnan(y).all()
        elif parameter in ("scale", "std") and function is not gg.random.truncated_normal:
            middle = drawn(function, parameter, 0.0)
            np.testing.assert_allclose(y - middle, middle - drawn(function, parameter, -value))


@pytest.mark.parametrize("backend", backends())
def test_counts_that_mean_nothing_draw_minus_one(backend):
    odd = [[1e308, 1e308], [math.inf, 1.0], [3.0, 1.0]]
    with gg.Graph():
        p, n, k = gg.placeholder((5,)), gg.placeholder((4,)), gg.placeholder((3, 2))
        y = {"tries": gg.random.geometric((5,), p, seed=1)}
        if backend != "jax":  # XLA takes seconds for each of these
            y["counts"] = gg.random.binomial((4,), n, 0.5, seed=1)
            y["odd"] = gg.random.multinomial(10, k, seed=1)
            y["half"] = gg.random.multinomial(n[1:2], [[1.0, 2.0]], seed=1)
        f = gg.compile([p, n, k], y, backend=backend)
    y = f([math.nan, -1.0, 0.0, 1.0, 2.0], [4.0, 2.5, -1.0, 0.0], odd)
    assert y["tries"].tolist() == [-1, -1, -1, 1, -1]
    if backend != "jax":
        assert y["counts"][0] in range(5)
        assert y["counts"][1:].tolist() == [-1, -1, 0]
        assert y["odd"][:2].tolist() == [[-1, -1]] * 2
        assert y["odd"][2].sum() == 10
        assert y["half"].tolist() == [[-1, -1]]


def test_counts_and_ends_that_are_numbers_are_refused_at_once():
    for wrong in (2.5, np.float32(2.5), np.array(0.5)):
        for draw in (
            partial(gg.random.binomial, (2,), p=0.5),
            partial(gg.random.multinomial, p=[1]),
        ):
            with pytest.raises(ValueError, match="n is an integer, at least 0, got"):
                draw(n=wrong)
    two, one = np.float32(2), np.float32(1)
    for a, b in ((two, one), (math.nan, one), (one, math.nan), (np.array(2.0), 1)):
        with pytest.raises(ValueError, match="low <= high"):
            gg.random.uniform((2,), a, b)
        with pytest.raises(ValueError, match="less than upper"):
            gg.random.truncated_normal((2,), a, b)
        with pytest.raises(ValueError, match="left <= mode"):
            gg.random.triangular((2,), a, b, np.float32(3))


def test_ends_of_a_range_may_be_arrays():
    ends = np.array([0.0, 1.0, 2.0])
    for low, high in ((ends, 2.5), (-1.0, ends), (ends, ends + 1)):
        y = gg.evaluate(gg.random.uniform((1000, 3), low, high, seed=1))
        assert ((low <= y) & (y <= high)).all()
        np.testing.assert_allclose(y.mean(0), (low + high) / 2 + np.zeros(3), atol=0.1)


def test_there_are_numbers():
    assert len(NUMBERS) > 130


OPTIONS = {
    "integrated_gradients": {"steps": (0, -1, 2.5, "5", True), "baseline": ("0.1",)},
    "smoothgrad": {"samples": (0, 1.5, "5"), "stdev": (-1.0, math.nan, "1"), "seed": (-1, 0.5)},
    "grad_cam": {"channel_axis": (1.5, "1", True), "relu": ("no",)},
    "lrp": {"epsilon": (-1.0, "1", math.inf), "stabiliser": (-1.0, True)},
    "deeplift": {"baseline": ("0.1",), "unknown": ("no",)},
}
COMPOSITES = {
    "epsilon_gamma": {"gamma": (-1.0, "1", math.nan)},
    "epsilon_alpha_beta": {"alpha": (0.5, "1", math.nan)},
    "epsilon_box": {"low": ("0", math.nan), "high": ("0", math.inf)},
}
"""Values of options that mean nothing; each has to be named."""


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    with gg.Graph():
        x = gg.placeholder(("N", 4, 4, 1), name="x")
        h = gg.nn.relu(gg.nn.conv(x, rng.normal(size=(3, 3, 1, 2))))
        return gg.compile(x, gg.mean(h, (1, 2)) @ rng.normal(size=(2, 3)))


IMAGE = np.random.default_rng(1).uniform(size=(1, 4, 4, 1))


def test_S43_methods_of_attribution_refuse_what_means_nothing(model):
    asked = [(method, {}, o) for method, o in OPTIONS.items()]
    asked += [("lrp", {"composite": composite}, o) for composite, o in COMPOSITES.items()]
    for method, others, options in asked:
        for name, values in options.items():
            for value in values:
                with pytest.raises((TypeError, ValueError), match=name):
                    gg.attribute(model, IMAGE, method, target=0, **others, **{name: value})


def test_no_number_of_a_method_is_forgotten():
    tried = {method: set(options) for method, options in OPTIONS.items()}
    tried["lrp"] |= {name for options in COMPOSITES.values() for name in options}
    for method, function in METHODS.items():
        taken = {
            p.name
            for p in inspect.signature(function).parameters.values()
            if re.search(r"\b(float|int|Any)\b", str(p.annotation)) and p.name != "rules"
        }
        assert taken <= tried.get(method, set()), method


def test_S43_an_option_that_nothing_reads_is_refused(model):
    for options in (
        {"gamma": 0.5},
        {"composite": "epsilon_plus", "alpha": 3.0},
        {"composite": "epsilon_gamma", "low": 0.0},
        {"composite": "epsilon_flat", "high": 1.0},
    ):
        name = list(options)[-1]
        with pytest.raises(TypeError, match=f"has no option '{name}'. It reads epsilon, "):
            gg.attribute(model, IMAGE, "lrp", target=0, **options)
    gg.attribute(model, IMAGE, "lrp", target=0, composite="epsilon_gamma_box", gamma=0.5, high=2.0)


def test_S43_a_box_holds_the_image(model):
    box = partial(gg.attribute, model, IMAGE, "lrp", target=0, composite="epsilon_box")
    with pytest.raises(ValueError, match="low <= high"):
        box(low=2.0, high=-2.0)
    for low, high in ((5.0, 6.0), (0.0, IMAGE.max() - 0.01), (IMAGE.min() + 0.01, 1.0)):
        with pytest.raises(ValueError, match="x ranges from"):
            box(low=low, high=high)
    box(low=IMAGE.min(), high=IMAGE.max() * (1 - 1e-9))  # off by rounding


X = np.array([-0.3, 0.3, 0.8])
OF_TENSORS = {
    "step": (lambda x, t: gg.rules.lsq(x, t, bits=4), (-0.1, 0.0, math.nan, math.inf), 0.5),
    "alpha": (lambda x, t: gg.rules.pact(x, t), (-1.0, 0.0), 0.5),
    "low < high": (lambda x, t: gg.rules.fake_quantise(x, t, 1.0), (1.0, 2.0), 0.0),
    "low is": (lambda x, t: gg.rules.fake_quantise(x, t, 1.0), (math.nan, -math.inf), 0.0),
    "p is": (
        lambda x, t: gg.random.choice(3, (4,), p=t * gg.constant([1.0, 2.0, 0.0]), seed=1) * x[0],
        (-1.0, 0.0, math.nan, 1e308),
        0.5,
    ),
}


@pytest.mark.parametrize("backend", backends())
def test_S43_a_tensor_outside_of_its_domain_is_refused_when_run(backend):
    """With the name of the parameter, and of the node; the next run is as the first one."""
    for said, (function, wrong, right) in OF_TENSORS.items():
        if backend == "jax" and said not in ("step", "p is"):
            continue  # the same op, and time to compile
        with gg.Graph():
            x, t = gg.placeholder((3,), name="x"), gg.placeholder((), name="t")
            run = gg.compile([x, t], function(x, t), backend=backend)
        before = run(X, right)
        for value in wrong:
            with pytest.raises(ValueError, match=said) as caught:
                run(X, value)
            assert any("Demand" in note for note in caught.value.__notes__)
        np.testing.assert_array_equal(run(X, right), before)


def test_S43_constants_are_refused_at_once():
    for function, wrong, right in OF_TENSORS.values():
        with gg.Graph():
            function(gg.constant(X), gg.constant(right))
            for value in (gg.constant(v) for v in wrong[:1]):
                if function is OF_TENSORS["p is"][0]:
                    continue  # computed from it
                with pytest.raises(ValueError, match="got"):
                    function(gg.constant(X), value)


NARROW = {  # numbers that mean something until they are cast to the dtype of x
    "step": ("float32", lambda x, kind: gg.rules.lsq(x, kind(1e-60), bits=4)),
    "alpha": ("float16", lambda x, kind: gg.rules.pact(x, kind(1e-10))),
    "high": ("float32", lambda x, kind: gg.rules.fake_quantise(x, kind(0.0), kind(1e60))),
    "low < high": (
        "float32",
        lambda x, kind: gg.rules.fake_quantise(x, kind(1.0), kind(1 + 1e-12)),
    ),
}


def test_S43_a_parameter_is_of_its_domain_in_the_dtype_that_it_is_computed_in():
    for said, (dtype, function) in NARROW.items():
        with gg.Graph():
            one, x = gg.placeholder(()), gg.constant(X.astype(dtype))
            with pytest.raises(ValueError, match=said):
                function(x, float)
            run = gg.compile(one, function(x, lambda value, one=one: value * one))
            with pytest.raises(ValueError, match=said), np.errstate(over="ignore"):
                run(1.0)


@pytest.mark.parametrize("backend", backends())
def test_S43_what_a_schedule_returns_is_checked_like_a_rate(backend):
    with gg.Graph() as graph:
        w, rate = gg.variable([1.0, 2.0], name="w"), gg.placeholder((), name="rate")
        grads = gg.gradients([gg.sum(w * w)], [w])
        for wrong, error in (
            (-0.1, ValueError),
            (math.nan, ValueError),
            ("0.1", TypeError),
            (None, TypeError),
            (True, TypeError),
            (gg.constant([0.1, 0.1]), gg.ShapeError),
        ):
            with pytest.raises(error, match="learning_rate of a schedule is"):
                gg.optimizers.SGD(lambda step, wrong=wrong: wrong).updates([w], grads)
        with pytest.raises(gg.ShapeError, match="learning_rate is one number"):
            gg.optimizers.Adam(gg.constant([0.1, 0.1]))
        updates = gg.optimizers.SGD(lambda step: rate).updates([w], grads)
        run = gg.compile(rate, w, updates=updates, backend=backend)
    run(0.25)
    with pytest.raises(ValueError, match="learning_rate of a schedule is a finite number"):
        run(-0.25)
    np.testing.assert_array_equal(graph.state["w"], [0.5, 1.0])


@pytest.mark.parametrize("ends", ["[]", "[)", "(]", "()"])
@pytest.mark.parametrize("how", ["finite", "infinite", "whole"])
def test_a_domain_holds_what_lies_between_its_ends_and_says_so(how, ends):
    whole, infinite = how == "whole", how == "infinite"
    probes = [-math.inf, -3, -2, 0, 2, 3, math.inf, math.nan]
    for low, high in ((-2, 2), (-2, math.inf), (-math.inf, 2), (-math.inf, math.inf)):
        domain = Domain(low, high, ends, whole=whole, infinite=infinite)
        every = math.isinf(low) and math.isinf(high)
        for x in probes[1:-2] if whole else probes:
            inside = (
                low < x < high or (x == low and ends[0] == "[") or (x == high and ends[1] == "]")
            )
            inside = inside and (infinite or math.isfinite(x))
            inside = inside or (every and infinite)  # NaN, and what is at an open end
            assert domain.holds(x) == inside, (domain, x)
            assert domain.holds(np.array([x])) == inside
        said = str(domain)
        lowest = f"{'more than' if ends[0] == '(' else 'at least'} {low}"
        highest = f"{'below' if ends[1] == ')' else 'at most'} {high}"
        assert (lowest in said, highest in said) == (low == -2, high == 2)
        finite = high == math.inf and (not infinite or ends[1] == ")")
        kind = "an int" if whole else "a finite number" if finite else "a number"
        assert said.partition(",")[0] == kind
        numbers = [1, np.uint8(1), np.array(1), 1.0, np.float32(1), np.array(1.0)]
        assert [domain.takes(x) for x in numbers] == [True] * 3 + [not whole] * 3
        assert not any(map(domain.takes, (True, np.True_, 1j, "1", None, np.array([1]))))


class Index:
    """What libraries have for a number in an array: it has `__index__`, whatever it holds."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        if not isinstance(self.value, int):
            raise TypeError("only integers can be converted to an index")
        return self.value


def test_an_int_is_what_says_so_and_not_what_has_the_method():
    bits = Domain(1, 64, whole=True)
    assert [bits.takes(Index(x)) for x in (2, 2.5)] == [True, False]
    with gg.Graph() as g:
        x, tensors = gg.constant([0.3]), [gg.constant(v) for v in (2, 2.5, math.nan)]
        built = len(g.nodes)
        for wrong in (*tensors, Index(2.5)):
            with pytest.raises(TypeError, match="bits is an int, at least 2 and at most 64, got"):
                gg.rules.lsq(x, 0.5, bits=wrong)
            with pytest.raises(TypeError, match="ignore_index is an int, got"):
                gg.nn.nll_loss(x, 0, ignore_index=wrong)
        with pytest.raises(TypeError, match="seed is an int, got"):
            gg.rules.feedback(seed=tensors[1])
        assert len(g.nodes) == built


def test_a_list_of_numbers_is_an_array_of_them():
    x = gg.constant([0.3, -2.0])
    dx = gg.gradients(gg.square(x), x, overrides={"Square": gg.rules.clip_value([0.5, 1.0])})
    np.testing.assert_array_equal(gg.evaluate(dx), [0.5, -1.0])


def test_a_seed_of_few_bits_is_one_of_many():
    x, found = gg.constant(3.0), []
    for seed in (100, np.int8(100)):
        rule = gg.rules.spsa(gg.square, samples=3, seed=seed)
        found.append(gg.gradients(gg.square(x), x, overrides={"Square": rule}))
    np.testing.assert_array_equal(*gg.evaluate(found))


def test_functions_that_are_none_are_refused_where_they_are_given():
    for rule, name in (
        (gg.rules.surrogate, "f"),
        (gg.rules.spsa, "f"),
        (lambda f: gg.rules.masked(f, gg.exp), "f"),
        (lambda f: gg.rules.masked(gg.exp, f), "mask"),
    ):
        for wrong in (3, "exp", gg.constant(1.0)):
            with pytest.raises(TypeError, match=f"{name} is a function, got"):
                rule(wrong)


def test_a_demand_is_an_identity_to_gradients_and_batches():
    """Of both orders, in both modes, under vmap, in a loop, and saved."""
    with gg.Graph():
        x, s = gg.placeholder((3,), name="x"), gg.placeholder((2,), name="s")
        each_one = gg.vmap(lambda s: gg.rules.lsq(x, s, bits=3))(s)
        apart = gg.stack([gg.rules.lsq(x, s[i], bits=3) for i in range(2)])
        found = [[y, *gg.gradients(gg.sum(y * y), [x, s])] for y in (each_one, apart)]
        run = gg.compile([x, s], found)
        looped, _ = gg.scan(lambda c, row: (c + gg.rules.lsq(row, s[0]), None), x[0] * 0.0, x)
        loop = gg.compile([x, s], [looped, gg.gradients(looped, s)])
    one, other = run(X, np.array([0.5, 0.25]))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b)
    with pytest.raises(ValueError, match="step is a finite number, more than 0, got -1"):
        run(X, np.array([0.5, -1.0]))
    np.testing.assert_allclose(loop(X, np.array([0.5, 1.0]))[0], 0.5 * np.rint(X / 0.5).sum())
    with pytest.raises(ValueError, match="step is"):
        loop(X, np.array([0.0, 1.0]))


@together([([1e308] * 3,), ([-0.5, 0.9, 0.6],), ([math.nan, 0.9, 0.1],), ([0.0] * 3,)])
def test_choice_refuses_what_numpy_refuses(p):
    with pytest.raises(ValueError):
        np.random.default_rng(0).choice(3, 8, p=p)
    for a in (3, np.arange(3.0)):
        with pytest.raises(ValueError, match="p is at least 0, with a finite sum"):
            gg.random.choice(a, (8,), p=p)


def test_choice_draws_what_is_likely():
    """Of the least numbers there are, too; without replacement as many as are likely at all."""
    tiny = np.array([0.0, 5e-324, 0.0])
    assert set(gg.evaluate(gg.random.choice(3, (50,), p=tiny, seed=1)).tolist()) == {1}
    some = [0.5, 0.0, 0.5]
    assert sorted(gg.evaluate(gg.random.choice(3, (2,), False, some, seed=1)).tolist()) == [0, 2]
    with pytest.raises(ValueError, match="p is above 0 for at least 3"):
        gg.random.choice(3, (3,), False, some)


def test_a_black_box_with_an_adjoint_takes_no_option():
    x = gg.constant(2.0)
    box = partial(gg.rules.black_box, lambda x: np.asarray(x**3), [x], [((), "float64")])
    for name in ("vjp", "jvp", "samples", "nonsense"):
        with pytest.raises(TypeError, match=f"takes no option, got '{name}'"):
            box(lambda x, dy: 3 * x**2 * dy, **{name: 3})
    with pytest.raises(TypeError, match=r"no option 'sample'. Did you mean 'samples'"):
        box(sample=3)
    assert gg.evaluate(gg.gradients(box(samples=2), x)) == pytest.approx(12.0, rel=1e-4)


def test_options_of_rules_that_nothing_reads():
    with pytest.raises(TypeError, match="not beside weights="):
        gg.rules.feedback(np.ones((1, 2)), std=0.1)
    x = gg.constant(3.0)
    with pytest.raises(gg.GradientError, match=r"has 2 inputs, and this rule stops \[2\]"):
        gg.gradients(x * x, x, overrides={"Multiply": gg.rules.stop(2)})


def test_parameters_that_are_tensors_follow_schedules():
    """The slope of a surrogate, the limit of a clip."""
    with gg.Graph():
        x, t = gg.placeholder((3,), name="x"), gg.placeholder((), name="t")
        rules = {"Sign": gg.rules.fast_sigmoid(t), "Exp": gg.rules.clip_value(t)}
        dx = gg.gradients(gg.sum(gg.sign(x) + gg.exp(x)), x, overrides=rules)
        run = gg.compile([x, t], dx)
    for t in (0.5, 2.0):
        wanted = 1 / (1 + t * np.abs(X)) ** 2 + np.clip(np.exp(X), -t, t)
        np.testing.assert_allclose(run(X, t), wanted)
    with pytest.raises(ValueError, match="number, more than 0"):
        run(X, -1.0)


def test_what_jax_maps_and_exports_gives_nan_where_a_demand_does_not_hold(tmp_path):
    jax = pytest.importorskip("jax")
    with gg.Graph():
        x, s = gg.placeholder((3,), name="x"), gg.placeholder((), name="s")
        run = gg.compile([x, s], gg.rules.pact(x, s))
    with jax.enable_x64(True):
        found = jax.vmap(lambda s: run.as_jax()([X, s])[0])(np.array([0.5, 0.25]))
        np.testing.assert_allclose(found, [run(X, 0.5), run(X, 0.25)])
        assert np.isnan(run.as_jax()([X, np.float64(-1.0)])[0]).all()
    run.export_stablehlo(tmp_path / "m.hlo")
    loaded = gg.interop.load_stablehlo(tmp_path / "m.hlo")
    with jax.enable_x64(True):
        np.testing.assert_allclose(loaded.call([X, np.float64(0.5)])[0], run(X, 0.5))
        assert np.isnan(loaded.call([X, np.float64(-1.0)])[0]).all()
