"""What is nearly a formula of the table is no instance of it."""

import numpy as np
import pytest

import graphgrad as gg

from .test_heal import healed

NEARLY = {
    "arcsinh": lambda x: gg.log(x + gg.sqrt(x * x + 4)),
    "gammaln_step": lambda x: gg.special.gammaln(2 * x + 2) - gg.special.gammaln(x),
    "arctanh": lambda x: gg.log(3 * (1 + x) / (1 - x)),
    "expm1": lambda x: gg.exp(x) - 3,
    "sinh": lambda x: gg.exp(x) - 2 * gg.exp(-x),
    "tanh_complement": lambda x: 1 - 2 * gg.tanh(x) ** 2,
    "x_less_log_expm1": lambda x: 2 * x - gg.log(gg.exp(x) - 1),
    "softplus_of_negative": lambda x: 2 * x + gg.nn.softplus(-x),
    "one_less_tanh": lambda x: 2 - gg.tanh(x),
    "x_less_sin": lambda x: x - 2 * gg.sin(x),
    "langevin": lambda x: 1 / gg.tanh(x) - 2 / x,
    "sinc": lambda x: gg.sin(2 * x) / (x + 1),
    "tan_of_half": lambda x: (1 - gg.cos(x)) / gg.sin(2 * x),
}


@pytest.mark.parametrize("name", NEARLY)
def test_near_misses(name):
    f = NEARLY[name]
    for x in (0.3, 0.7):
        value, _, names = healed(f, x)
        assert name not in names
        np.testing.assert_allclose(value, gg.evaluate(f(gg.constant(x))), rtol=1e-13)


def test_numbers_are_equal_up_to_last_bits():
    above = 1 + 1e-12
    assert healed(lambda x: gg.exp(x) - above, 0.0)[0] == 1 - above
    assert healed(lambda x: (gg.exp(x) * 0.1) * 3 - 0.3 * gg.exp(-x), 1.0)[2] == ["sinh"]
