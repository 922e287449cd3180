"""What is added up in a healed form is added up in the order in which it was written."""

import numpy as np
import pytest

import graphgrad as gg

from .test_heal import healed

FAR = (1e16, 1e16 - 2.0, 3.0)
FORMS = {
    "factor": (lambda x, y, z: gg.log(gg.exp(x - y) * z), FAR, 2 + np.log(3.0)),
    "half": (lambda x, y, z: 1 - gg.cos((x - y) + z), FAR, 1 - np.cos(5.0)),
    "negative": (lambda x, y, z: 1 / (1 + gg.exp((y - x) - z)), FAR, 1 / (1 + np.exp(-5.0))),
    "product": (lambda x, y, z: gg.exp(x - y) * gg.exp(z) - 1, FAR, np.expm1(5.0)),
    "number": (lambda x, y, z: gg.log(gg.exp((x - 1e16) + 1) * z), FAR, 1 + np.log(3.0)),
    "one first": (lambda p, q: gg.log((1 - p) - q), (0.5, 0.5 - 2.0**-54), -54 * np.log(2.0)),
    "healed parts": (
        lambda x, y, z: gg.log(gg.exp(gg.log(1 + gg.exp(x)) - y) * z),
        (800.0, 799.0, 3.0),
        1 + np.log(3.0),
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_sums_keep_their_order(name):
    f, at, wanted = FORMS[name]
    value, slopes, _ = healed(f, *at)
    np.testing.assert_allclose(value, wanted, rtol=1e-14)
    assert np.isfinite(slopes).all()


def test_one_and_a_sum_that_was_written():
    assert healed(lambda p, q: gg.log(1 - (p + q)), 1e-20, 1e-20)[0] == -2e-20
    assert healed(lambda p, q: gg.log(1 - (q - p)), 1e-20, 3e-20)[2] == ["log1p"]
    assert healed(lambda p, q: gg.log((1 - p) - q), 1e-20, 1e-20)[2] == []


def test_a_pattern_takes_a_sum_for_its_argument_where_that_was_written():
    both = [
        healed(f, 1e-20, 3e-20, 0.5)[2]
        for f in (lambda p, q, y: (1 - (p + q)) ** y - 1, lambda p, q, y: ((1 - p) - q) ** y - 1)
    ]
    assert both == [["compound_less_one"], []]
