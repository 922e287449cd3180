"""What rows refuse: the error names the rule, the parameter, what it has to be, and the line."""

import re

import numpy as np
import pytest

import graphgrad as gg

R = gg.rules
ONE = np.ones
BOUNDS = ("low < high", ValueError)
LAST = "without its last axis"


def x():
    return gg.constant([[0.3, -0.7, 1.2], [0.0, 2.0, -0.1]])


def on(rule, f=gg.identity):
    """The gradient of a site with a rule."""
    at = x()
    with gg.override_gradient(rule):
        y = f(at)
    return gg.gradients(y, at)


def aggregated(name, times, **given):
    at = x()
    return gg.gradients(sum(getattr(R, name)(at, times, **given)), at)


BUILT = {
    # ends that are in order
    "hard_concrete": (lambda: R.hard_concrete(x(), 0.4, low=1.5, high=1.0), *BOUNDS),
    "clip_range": (lambda: R.clip_range(1.0, -1.0), *BOUNDS),
    "clamp_inward": (lambda: R.clamp_inward(gg.constant(1.0), -1.0), *BOUNDS),
    "int_quant": (lambda: R.int_quant(x(), 0.5, low=4, high=-4), *BOUNDS),
    "fake_quantise_tokens": (lambda: R.fake_quantise_tokens(x(), low=0, high=0), *BOUNDS),
    "power_of_two": (lambda: R.power_of_two(x(), low=4, high=-4), *BOUNDS),
    "quantise_and_dequantise": (lambda: R.quantise_and_dequantise(x(), 0.0, 0.0), *BOUNDS),
    "fake_quantise_tf": (lambda: R.fake_quantise_tf(x(), 1.0, [1.0, 2.0, 0.5]), *BOUNDS),
    "soft_clip": (lambda: R.soft_clip(x(), gg.constant(1.0), gg.constant(-1.0)), *BOUNDS),
    "clamp_ste": (lambda: R.clamp_ste(x(), 1.0, -1.0), *BOUNDS),
    # numbers
    "atan": (
        lambda: R.atan(alpha=-1.0),
        "alpha is a finite number, more than 0, got -1",
        ValueError,
    ),
    "narrow": (
        lambda: R.fake_quantise_tf(x(), -1.0, 1.0, bits=1, narrow=True),
        "a narrow range has 2 bits or more, got bits 1, narrow True",
        ValueError,
    ),
    "bits": (
        lambda: R.quantise_and_dequantise(x(), bits=1),
        "bits is an int, at least 2",
        ValueError,
    ),
    "tqt": (lambda: R.tqt(x(), float("nan")), "log2_t is a finite number, got nan", ValueError),
    "q_pseudo_spike": (lambda: R.q_pseudo_spike(alpha=0.5), r"alpha \+ shift > 0", ValueError),
    "stretched_elastic": (
        lambda: R.stretched_elastic(x(), 0.5, clip=1.5),
        "clip is a number, more than 0 and below 1, got 1.5",
        ValueError,
    ),
    "supermask": (lambda: R.supermask([np.nan, 1.0], ONE(2)), "scores is a finite", ValueError),
    "sinkhorn": (
        lambda: R.sinkhorn(x(), [-1.0, 2.0], ONE(3) / 3),
        "rows is .* at least 0",
        ValueError,
    ),
    "plans": (lambda: R.sinkhorn(x(), ONE(2), ONE(3)), "rows and columns have one sum", ValueError),
    "budget": (lambda: R.budget(x(), 9.0), "budget is at most the length of the axis", ValueError),
    "clip_global_norm": (
        lambda: R.clip_global_norm(x(), limit=1.0, norm=0.0),
        "norm is a number, more than 0",
        ValueError,
    ),
    "step": (lambda: R.int_quant(x(), -0.5), "step is a finite number, more than 0", ValueError),
    "uniform": (
        lambda: R.arm(x(), 2.0 * ONE((2, 3)), gg.sum),
        "uniform is .* at most 1",
        ValueError,
    ),
    "dithered": (lambda: R.dithered(uniform=-1.0), "uniform is .* at least 0", ValueError),
    "batch": (lambda: R.batch_topk_relu(x(), 0.1), "k is at least one for the whole", ValueError),
    "krum": (lambda: aggregated("jd_krum", 3), r"times is at least byzantine \+ 3", ValueError),
    "trim": (lambda: aggregated("jd_trimmed_mean", 2), "times is at least 2 trim", ValueError),
    "upgrad": (lambda: aggregated("jd_upgrad", 9), "times is at most 8", ValueError),
    # words and kinds
    "soft_round": (
        lambda: R.soft_round(mode="c9"),
        "mode is one of 'smooth', 'c0', 'c1'",
        ValueError,
    ),
    "fsq": (lambda: R.fsq(x(), 3), "levels is several, each an int, at least 2, got 3", TypeError),
    "levels": (lambda: R.fsq(x(), (5, 1, 3)), "levels is an int, at least 2, got 1", ValueError),
    "format": (lambda: R.fake_float8_rows(x(), format=["e4"]), "format is one of", ValueError),
    "formats": (lambda: R.fake_float8(x(), 1.0, format=["e4"]), "format is one of", ValueError),
    "flag": (lambda: R.lfq(x(), clamp=True), "clamp is", TypeError),
    "keyword": (lambda: R.atan(slope=1.0), "unexpected keyword .* it is atan", TypeError),
    "nothing": (lambda: R.sign_ste(), "missing a required argument: 'x'", TypeError),
    "none": (lambda: R.clip_global_norm(), "missing a required argument: 'limit'", TypeError),
    "lsq": (lambda: R.lsq(x(), 0.5, inside="out"), "inside is 'exact' or 'rounded'", ValueError),
    # shapes
    "features": (lambda: R.fsq(x(), (3, 3)), "a level for each feature", ValueError),
    "latent": (lambda: R.latent_quantise(x(), (3, 3)), "a level for each feature", ValueError),
    "group": (lambda: R.int_quant(x(), ONE((2, 1)), group=3), "pass axis= too", ValueError),
    "channels": (
        lambda: R.int_quant(x(), ONE(2), axis=-1),
        r"step must have shape \(3,\)",
        gg.ShapeError,
    ),
    "axis": (lambda: R.sparsemax(x(), axis=7), "axis 7 does not fit 2 axes", gg.ShapeError),
    "vq_st": (
        lambda: R.vq_st(x(), ONE(3)),
        r"codebook must have shape \(\*, codes, f",
        gg.ShapeError,
    ),
    "books": (lambda: R.residual_vq(x(), ONE((5, 3))), "codebooks must have shape", gg.ShapeError),
    "target": (lambda: R.vq_rotate_to(x(), ONE((2, 4))), "features is 3, got", gg.ShapeError),
    "noise": (
        lambda: R.perturbed(x(), ONE((2, 3)), gg.identity),
        r"noise must have shape \(..., samples, n\), where ... is \(2,\), n is 3, got \(2, 3\)",
        gg.ShapeError,
    ),
    "weights": (
        lambda: aggregated("jd_constant", 3, weights=ONE(2)),
        r"weights must have shape \(times\), where times is 3, got \(2,\)",
        gg.ShapeError,
    ),
    "examples": (
        lambda: R.per_example_global_norm_clip(gg.constant(1.0), limit=1.0),
        "the first axis of all tensors is that of examples",
        ValueError,
    ),
    # answers of functions
    "arm": (lambda: R.arm(x(), ONE((2, 3)), gg.identity), LAST, gg.ShapeError),
    "disarm": (lambda: R.disarm(x(), ONE((2, 3)), gg.sum), LAST, gg.ShapeError),
    "solve": (
        lambda: R.interpolated(x(), lambda c: gg.sum(c, -1)),
        r"solve \(test_refusals.py:\d+\) gives a tensor of the shape of what it takes",
        gg.ShapeError,
    ),
    "nothing solved": (lambda: R.identity_solver(x(), lambda c: None), "got None", gg.ShapeError),
    "spo_plus": (
        lambda: R.spo_plus(x(), x(), x(), ONE((2, 1)), lambda c: gg.sum(c)),
        "solve .* gives",
        gg.ShapeError,
    ),
}
ON_SITES = {
    "guided": (lambda: on(R.guided(), lambda x: x @ ONE((3, 4))), "the shape of the output"),
    "attn_mean": (lambda: on(R.attn_mean(), gg.exp), "for a reduction along axis -1"),
    "norm": (lambda: on(R.norm(), gg.exp), "for a reduction along axis None"),
    "logsumexp": (lambda: on(R.logsumexp(), gg.exp), "for a reduction along axis -1"),
    "attn_softmax": (lambda: on(R.attn_softmax(), gg.exp), "for Softmax, .* is one of Exp"),
    "attn_add": (lambda: on(R.attn_add(), gg.exp), "for Add, .* is one of Exp"),
    "centralise": (lambda: on(R.centralise(axis=7)), "axis 7 does not fit 2 axes"),
    "gradient_noise": (lambda: on(R.gradient_noise(noise=ONE(7))), "do not broadcast"),
    "meprop": (lambda: on(R.meprop(k=9)), "the first 9 along axis 1"),
}


@pytest.mark.parametrize("name", BUILT)
def test_what_is_wrong_is_said_where_it_is_given(name):
    """S42: nothing is built on the way."""
    build, said, kind = BUILT[name]
    with pytest.raises(kind, match=said) as caught:
        build()
    if "lsq" not in name and name not in ("keyword", "nothing", "none", "formats"):
        assert re.search(r"^\w+\(\): .*\(.*test_refusals.py:\d+\)$", str(caught.value), re.DOTALL)


@pytest.mark.parametrize("name", ON_SITES)
def test_what_does_not_fit_a_site_names_rule_and_line(name):
    build, said = ON_SITES[name]
    with pytest.raises((gg.GradientError, gg.ShapeError), match=said) as caught:
        build()
    assert re.search(rf"'{name}\(.*\)' \(test_refusals.py:\d+\)", str(caught.value))


def test_bounds_that_a_run_brings_are_checked_by_it():
    low = gg.placeholder((), name="low")
    y = R.soft_clip(x(), low, 1.0)
    f = gg.compile([low], y)
    assert f(-1.0).shape == (2, 3)
    with pytest.raises(ValueError, match="low < high"):
        f(2.0)


def test_integers_have_no_gradient_to_replace():
    with pytest.raises(gg.RegionError):
        R.sign_ste(gg.constant([1, 2]))


def test_one_number_serves_for_all_elements():
    labels = np.array([0, 2])
    y = R.score_function(x(), labels, 1.0, 0.5)
    one = R.score_function(x(), labels, np.ones(2), np.full(2, 0.5))
    np.testing.assert_allclose(*gg.evaluate([y, one]))
