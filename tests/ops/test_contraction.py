"""The letters of two operands and their result, by what a matrix product does with them."""

import itertools

import numpy as np
import pytest

from graphgrad.ops.contract.einsum import contraction

CASES = [
    (("ab", "bc", "ac"), ("", "a", "c", "b", ("", ""))),
    (("ab", "cb", "ca"), ("", "a", "c", "b", ("", ""))),
    (("abc", "acd", "dba"), ("a", "b", "d", "c", ("", ""))),
    (("abx", "yb", "a"), ("", "a", "", "b", ("x", "y"))),
    (("a", "b", "ba"), ("", "a", "b", "", ("", ""))),
    (("abc", "bca", ""), ("", "", "", "abc", ("", ""))),
    (("ab", "ba", "ba"), ("ba", "", "", "", ("", ""))),
    (("", "a", "a"), ("", "", "a", "", ("", ""))),
]


@pytest.mark.parametrize(("terms", "letters"), CASES)
def test_letters_are_told_apart_by_who_has_them(terms, letters):
    assert tuple(contraction(*terms)) == letters


def test_a_stack_of_products_of_what_is_summed_before_is_the_einsum():
    lengths = {"a": 2, "b": 3, "c": 4, "d": 5}
    rng = np.random.default_rng(0)
    for x, y, z in itertools.product(["abc", "cad", "b"], ["bc", "dab", "c"], ["", "ba", "cb"]):
        if not set(z) <= {*x, *y}:
            continue
        stack, rows, columns, inner, alone = contraction(x, y, z)
        a, b = (rng.normal(size=[lengths[c] for c in term]) for term in (x, y))
        first = np.einsum(f"{x}->{stack + rows + inner}", a)
        second = np.einsum(f"{y}->{stack + inner + columns}", b)
        assert {*alone[0], *alone[1]}.isdisjoint({*stack, *rows, *columns, *inner})

        def size(letters):
            return int(np.prod([lengths[c] for c in letters], dtype=int))

        made = first.reshape(size(stack), size(rows), size(inner)) @ second.reshape(
            size(stack), size(inner), size(columns)
        )
        made = made.reshape([lengths[c] for c in stack + rows + columns])
        made = np.einsum(f"{stack + rows + columns}->{z}", made)
        np.testing.assert_allclose(made, np.einsum(f"{x},{y}->{z}", a, b))
