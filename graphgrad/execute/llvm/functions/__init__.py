"""Functions of vectors in IR: reductions of the argument, then minimax polynomials.

The polynomials were fitted by Remez' exchange for the least relative error, each coefficient
rounded to its type before the next ones were fitted. Every function is right for NaN, infinities,
zeros of both signs and denormal numbers, without a branch.
"""
