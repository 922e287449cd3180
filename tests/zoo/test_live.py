"""Rows beside the packages that they are compared with, as these are installed: other inputs than
the recorded ones, of which a package is asked again. Each package that is not there is skipped.

Of 430 cases of ten packages 426 agreed with the newest of October 2026 on Python 3.12, torch being
2.14.1: captum 0.9.0, entmax 1.3, optax 0.2.8, sae-lens 6.54.12, snntorch 1.0.0, softjax 0.1.1,
spikingjelly 2.0.0, torchao 0.18.0, vector-quantize-pytorch 1.32.0, zennit 1.0.0; the others are
named. 28 more are not asked here: they draw, or need more of a module than its codebook.
"""

import numpy as np
import pytest

from ..each import judge
from .adapter import build_of, run
from .cases import deviation, differences, recorded
from .live import PACKAGES, renewed

pytestmark = [pytest.mark.ci, pytest.mark.filterwarnings("ignore")]


DEVIATES = {"lowbit/fake_quantise_groups": "from torch 2.14 on clamp gives 0 at its ends"}
"""Rules of which a package's newest version may differ from what was recorded, and how."""


def agrees(package, case):
    """The row gives what the package gives, or its deviation is known."""
    case, rule = renewed(case), case["id"].rpartition("/")[0]
    with np.errstate(all="ignore"):
        live = PACKAGES[package](case)
        if live is None:
            return
        ys, grads = [np.asarray(y) for y in live[0]], {n: np.asarray(g) for n, g in live[1].items()}
        found = differences(*run(build_of(case), case), case | {"y": ys, "grads": grads})
    if rule not in DEVIATES:
        assert (found == []) != bool(deviation(case["id"])), found


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_a_row_is_what_a_package_gives_now(package):
    pytest.importorskip(package.replace("-", "_"))
    cases = [(n, c) for n, c in recorded().items() if c["what"].partition(":")[0] == package]
    judge([(n, (package, c)) for n, c in cases], agrees)


def test_a_composite_that_was_not_recorded_is_that_of_zennit():
    pytest.importorskip("zennit")
    case = recorded()["attribution/composite_alpha2beta1/0"]
    name = "composite_alpha2beta1_flat"
    agrees("zennit", case | {"rule": name, "id": f"attribution/{name}/0"})
