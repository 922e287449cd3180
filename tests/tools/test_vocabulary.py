"""The count of NumPy's functions: its table is whole, and nothing misbehaves."""

import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "tools" / "vocabulary"
sys.path.insert(0, str(FOLDER))
count = pytest.importorskip("count")
CALLS = count.calls()
OWN = """
append apply_along_axis apply_over_axes array_split atleast_1d atleast_2d atleast_3d block
broadcast_arrays broadcast_to choose clip column_stack concat concatenate copy cross delete diag
diagflat diagonal dsplit dstack einsum empty_like expand_dims flip fliplr flipud full_like geomspace
hsplit hstack insert ix_ kron linspace logspace meshgrid moveaxis ones_like pad permute_dims
piecewise ravel ravel_multi_index reshape resize roll rollaxis rot90 select shape size split squeeze
stack swapaxes take take_along_axis tile transpose tril triu unravel_index unstack vsplit vstack
zeros_like interp cov correlate quantile repeat angle vander isneginf isposinf isreal iscomplex
isrealobj iscomplexobj add exp arctan2 absolute
"""


@pytest.mark.parametrize("name", OWN.split())
def test_builds_nodes_for_every_argument_of_numpys(name):
    given = count.arrays()
    for call in CALLS[name]:
        assert (call, *count.outcome(call, given)) == (call, "whole", "")


@pytest.mark.ci
def test_nothing_misbehaves():
    kinds = {n: kind for n, (kind, _) in count.of_numpy().items()}
    assert [n for n, kind in kinds.items() if kind == "misbehaves"] == []
    assert {n for n, kind in kinds.items() if kind == "complex"} == set(count.ALWAYS_COMPLEX)


def test_a_wrong_answer_is_seen():
    given = {"A": np.ones(3)}
    assert count.compared(np.ones(2), given["A"])[0] == "misbehaves"
    assert count.compared(np.ones(3, "float32"), given["A"])[0] == "misbehaves"
    assert count.compared(np.zeros(3), given["A"])[0] == "misbehaves"
    assert count.compared([np.ones(3)], (given["A"],))[0] == "whole"
    assert count.outcome("asarray(A)", given)[0] == "refused"
    assert count.outcome("add(A, None)", given)[0] == "misbehaves"


QUANTILES = ("quantile", "percentile", "nanquantile", "nanpercentile")


def test_the_table_has_numpys_functions_and_their_keywords():
    known = {
        *("busday_count", "busday_offset", "datetime_as_string", "is_busday", "isnat"),
        *("einsum_path(optimize=)", "einsum_path(einsum_call=)"),
        *("savez(allow_pickle=)", "savez_compressed(allow_pickle=)"),
        *("sort(descending=)", "argsort(descending=)"),  # which NumPy has since 2.5
        *("in1d", "reshape(newshape=)"),  # which it had until 2.3, like the four below
    }
    known |= {f"{f}(interpolation=)" for f in QUANTILES}
    missing = {m for m in count.missing_from_the_table() if not m.startswith("array2string(")}
    assert missing <= known


def test_the_differential_run_judges_five_layouts_their_values_and_gradients():
    differential = pytest.importorskip("differential")
    tally = differential.Tally()
    a = np.array([[1.0, -2.0], [0.5, 4.0]])
    differential.check(differential.Case("exp", "np.exp(A)", "np", {"A": a}), tally)
    assert (tally.counts["right"], tally.gradients["judged"]) == (5, 5)
    for wrong in ("np.exp(np.where(A > 3, A + 1e-6, A))", "np.exp(A.astype('float32'))"):
        case = differential.Case("exp", "np.exp(A)", "scipy", {"A": a})
        differential._theirs()["np.exp(A)"] = wrong
        differential.check(case, tally)
    assert (tally.counts["right"], tally.counts["wrong"]) == (6, 9)
