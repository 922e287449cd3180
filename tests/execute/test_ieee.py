"""Floating-point errors are ignored during a run, and only then."""

import warnings

import numpy as np
import pytest

from graphgrad.execute import ieee


@pytest.fixture(params=["found", "elsewhere"])
def setting(request):
    if request.param == "found":
        return ieee.SETTING, ieee.IGNORE
    return ieee._Errstate(), None


def test_nothing_warns_between_set_and_reset(setting):
    variable, ignore = setting
    before = np.geterr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        token = variable.set(ignore)
        try:
            assert np.isnan(np.log(-np.ones(2))).all()
            assert set(np.geterr().values()) == {"ignore"}
        finally:
            variable.reset(token)
    assert np.geterr() == before
    with pytest.warns(RuntimeWarning):
        np.log(-np.ones(2))


def test_the_users_own_setting_comes_back(setting):
    variable, ignore = setting
    with np.errstate(all="raise"):
        token = variable.set(ignore)
        np.log(-np.ones(2))
        variable.reset(token)
        with pytest.raises(FloatingPointError):
            np.log(-np.ones(2))
