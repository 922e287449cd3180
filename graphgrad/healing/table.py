"""The table of identities, in the order in which they are tried.

What is matched is built by `naive`, a function of tensors, and read as a term, so that any spelling
of it is met: x * x or x**2, a - b or -b + a, with a factor in front or under a common power.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..ops.elementwise.exponential import EXP, LOG, SQRT
from ..ops.elementwise.trigonometry import Acos
from .identity import RealIdentity, Rewriter, TermPattern, heads_of
from .rows.exponentials import EXPONENTIALS
from .rows.logarithms import LOGARITHMS
from .rows.others import OTHERS
from .rows.quotients import QUOTIENTS
from .rows.roots import ROOTS
from .rules.differences import gap_over_its_parts, root_that_cancels
from .rules.exponentials import exp_of_exp, log_of_product, share_of_exponentials
from .rules.lengths import arccos_of_cosine, inverse_of_length, over_length, root_of_squares
from .rules.logarithms import (
    log_near_one,
    log_of_power,
    log_of_ratio,
    logit_of_odds,
    power_times_log,
)
from .rules.moments import product_by_logs, tail
from .rules.quotients import OF_PRODUCTS
from .terms import PRODUCT, SUM

IDENTITIES: tuple[RealIdentity, ...] = (*ROOTS, *EXPONENTIALS, *LOGARITHMS, *QUOTIENTS, *OTHERS)
"""All identities."""

_OF_LOGS = (log_of_product, log_of_power, log_of_ratio, log_near_one, logit_of_odds)
_OF_LENGTHS = (over_length, inverse_of_length)
_OF_PRODUCTS = (*OF_PRODUCTS, gap_over_its_parts, share_of_exponentials, power_times_log, tail)
HEADS: dict[Any, tuple[Any, ...]] = {
    root_of_squares: (SQRT,),
    exp_of_exp: (EXP, PRODUCT),
    product_by_logs: (EXP,),
    arccos_of_cosine: (Acos,),
    root_that_cancels: (SUM, PRODUCT),
    **dict.fromkeys(_OF_LOGS, (LOG,)),
    **dict.fromkeys((*_OF_LENGTHS, *_OF_PRODUCTS), (PRODUCT,)),
}
"""What a term calls, or SUM or PRODUCT, for which a rule is asked; others are for sums."""

OWN: dict[str, RealIdentity] = {}
"""Those of the user's, by name."""


def rewriter() -> Rewriter:
    """Rewrites by every identity of the table."""
    return Rewriter(_compiled())


@lru_cache(maxsize=1)
def _compiled() -> Rewriter:
    before = Rewriter()
    for identity in (*IDENTITIES, *OWN.values()):
        rule: Any = identity.rule
        heads = HEADS.get(rule, (SUM,))
        if rule is None:
            rule = TermPattern(identity, before)
            heads = heads_of(rule)
        before.put(identity, rule, heads)
    return before


def forget_compiled() -> None:
    """The table has changed."""
    _compiled.cache_clear()
