"""From where identities are known, and between which numbers they hold."""

from __future__ import annotations

import math

INF = math.inf
MAECHLER = 'Maechler 2012, "Accurately computing log(1 - exp(-|a|))"'
BLANCHARD = (
    'Blanchard, Higham, Higham 2021, "Accurately computing the log-sum-exp and softmax functions"'
)
GOLDBERG = (
    'Goldberg 1991, "What every computer scientist should know about floating-point arithmetic"'
)
HIGHAM = 'Higham 2002, "Accuracy and stability of numerical algorithms"'
KAHAN = 'Kahan 1987, "Branch cuts for complex elementary functions"'
CODY = 'Cody 1969, "Rational Chebyshev approximations for the error function"'
DLMF_4 = "DLMF 4.21, 4.35"
SERIES = "DLMF 4.19, 4.33; the double where of autodiff folklore"

POSITIVE = ((0, INF),)
ABOVE = ((-1, INF),)
UNIT = ((-1, 1),)
V = ((4,),)
VV = ((4,), (4,))
M = ((3, 3),)
