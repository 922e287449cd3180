"""Floating-point errors are ignored during a run, and only then."""

import warnings

import numpy as np
import pytest

from graphgrad.base import ieee


@pytest.fixture(params=["found", "elsewhere"])
def setting(request):
    if request.param == "found":
        return ieee.SETTING, ieee.IGNORE
    return ieee._Errstate(), ieee._Errstate.IGNORE


def test_nothing_warns_until_it_is_as_it_was(setting):
    variable, ignore = setting
    before = np.geterr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        was = variable.get()
        variable.set(ignore)
        try:
            assert np.isnan(np.log(-np.ones(2))).all()
            assert set(np.geterr().values()) == {"ignore"}
        finally:
            variable.set(was)
    assert np.geterr() == before
    with pytest.warns(RuntimeWarning):
        np.log(-np.ones(2))


def test_the_users_own_setting_comes_back(setting):
    variable, ignore = setting
    with np.errstate(all="raise"):
        was = variable.get()
        variable.set(ignore)
        np.log(-np.ones(2))
        variable.set(was)
        with pytest.raises(FloatingPointError):
            np.log(-np.ones(2))
