"""Roots, lengths, reciprocals and exponentials that cancel."""

from __future__ import annotations

from .reading import rows

ROOTS = rows("""
expm1 = peephole: exp(x) - 1 -> expm1(x)
    cancels near 0 | HIGHAM
root_square_less_one = peephole: sqrt(x**2 - 1) -> sqrt(|x| - 1) sqrt(|x| + 1)
    rounds near 1, overflows from 1e154 | GOLDBERG | stable root_of_difference(x, 1 + 0 * x) |
    ranges ((1, INF),) | rule root_of_squares
root_one_less_square = peephole: sqrt(1 - x**2) -> sqrt(1 - x) sqrt(1 + x)
    rounds near 1 | GOLDBERG | stable root_of_difference(1 + 0 * x, x) | ranges UNIT |
    rule root_of_squares
abs = scaling: sqrt(x**2) -> |x|
    x**2 overflows or underflows | HIGHAM | rule root_of_squares
hypot = scaling: sqrt(x**2 + y**2) -> hypot(x, y)
    x**2 overflows or underflows; the gradient is 0 / 0 at 0 | HIGHAM | rule root_of_squares
scaled_root = scaling: sqrt(x y - z w) -> s sqrt((x / s) (y / s) - (z / s) (w / s))
    products overflow or underflow | HIGHAM | naive sqrt(x * x + y * z) |
    stable scaled_root((1, 1), x, x, y, z) | ranges ((-INF, INF), (0, INF), (0, INF)) |
    rule root_of_squares
norm = scaling: sqrt(sum(x**2)) -> s sqrt(sum((x / s)**2)) with s = max|x|
    x**2 overflows or underflows; the gradient is 0 / 0 at 0 | HIGHAM | stable norm(0, False, x) |
    shapes V | rule root_of_squares
unit_vector = scaling: x / sqrt(sum(x**2)) -> x / norm(x); 0 at 0
    0 / 0 at 0 | HIGHAM | stable x / whole_norm(norm(0, True, x)) | shapes V | rule over_length
direction = closed: x / sqrt(x**2 + y**2) -> its slopes are y**2 / r**3 and -x y / r**3
    x**2 overflows or underflows; the slope along x cancels | HIGHAM | stable direction(x, y) |
    rule over_length
inverse_length = closed: 1 / sqrt(x**2 + y**2) -> its slopes are -(x / r) / r**2
    0 times infinity in the gradient where x is 0 and y is small | HIGHAM |
    stable inverse_length(x, y) | rule inverse_of_length | last
over_squares = scaling: x / (x**2 + y**2) -> x / hypot(x, y) / hypot(x, y)
    x**2 overflows or underflows | HIGHAM | stable over_squares(x, y) | rule over_length
root_of_difference = peephole: sqrt(x**2 - y**2) -> sqrt(|x| - |y|) sqrt(|x| + |y|)
    cancels where |x| is near |y|, overflows from 1e154 | GOLDBERG |
    stable root_of_difference(x, y) | ranges ((100, INF), (-100, 100)) | rule root_of_squares
root_that_cancels = regimes: sqrt(b**2 + r) - b -> r / (sqrt(b**2 + r) + b) for b > 0
    cancels where b**2 is much larger than r | GOLDBERG |
    naive (-b + sqrt(b * b - 4 * a * c)) / (2 * a) | stable larger_root(a, b, c) |
    ranges ((0, INF), (-INF, INF), (-INF, 0)) | rule root_that_cancels
difference_of_roots = peephole: sqrt(x + 1) - sqrt(x) -> 1 / (sqrt(x + 1) + sqrt(x))
    cancels for large x | GOLDBERG | ranges POSITIVE | rule difference_of_roots
difference_of_reciprocals = peephole: 1 / x - 1 / (x + 1) -> 1 / x / (x + 1)
    cancels for large x | GOLDBERG | rule difference_of_reciprocals
difference_of_ratios = peephole: x / (x + 1) - (x - 1) / x -> 1 / x / (x + 1)
    cancels for large x | GOLDBERG | rule difference_of_ratios
gap_over_its_parts = peephole: (sqrt(1 + x) - 1) / x -> 1 / (sqrt(1 + x) + 1)
    0 / 0 at 0 | GOLDBERG | ranges ABOVE | rule gap_over_its_parts
difference_of_squares = closed: x**2 - y**2 -> (x - y) (x + y)
    x**2 and y**2 round | GOLDBERG | stable difference_of_squares(x, y) |
    rule difference_of_squares | last
power_less_one = peephole: (1 + x)**n - 1 -> x (1 + (1 + x) + ... + (1 + x)**(n-1))
    cancels near 0 | HIGHAM | naive (1 + x)**3 - 1 | stable power_less_one(3, x) |
    rule power_less_one
compound_less_one = peephole: (1 + x)**y - 1 -> expm1(y log1p(x)) near 0
    cancels near 0 | HIGHAM | stable compound_less_one(x, y) | ranges (*ABOVE, (-INF, INF))
sinh = peephole: exp(x) - exp(-x) -> 2 sinh(x)
    cancels near 0 | DLMF_4
cosh = peephole: exp(x) + exp(-x) -> 2 cosh(x)
    its quotients are infinity over infinity | DLMF_4
difference_of_tanh = regimes: tanh(x) - tanh(y) -> 2 (sigmoid(2 x) - sigmoid(2 y))
    both round to 1 | DLMF_4 | stable tanh_difference(x, y) | rule difference_of_tanh
difference_of_arctan = regimes: arctan(x) - arctan(y) -> arctan((x - y) / (1 + x y))
    cancels where x is near y | DLMF_4 | stable arctan_difference(x, y) |
    rule difference_of_arctan
difference_of_exponentials = regimes: exp(x) - exp(y) -> exp(y) expm1(x - y)
    cancels where x is near y | HIGHAM | stable exp_difference(x, y) |
    rule difference_of_exponentials
""")
