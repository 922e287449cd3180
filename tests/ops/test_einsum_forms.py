"""einsum with lists in place of letters, and with a letter twice in one term."""

import numpy as np
import pytest

import graphgrad as gg

from .against_numpy import same

RNG = np.random.default_rng(0)
X, Y, CUBE = RNG.normal(size=(2, 3)), RNG.normal(size=(3, 4)), RNG.normal(size=(3, 3, 3))

LISTS = [
    ((X, [0, 1]), ()),
    ((X, [0, 1]), ([1, 0],)),
    ((X, [0, 1]), ([],)),
    ((X, [1, 0]), ()),
    ((X, [0, 1], Y, [1, 2]), ()),
    ((X, [0, 1], Y, [1, 2]), ([0, 2],)),
    ((X, [30, 2], Y, [2, 27]), ([27, 30],)),
    ((X, [..., 1], X, [..., 1]), ()),
    ((X, [..., 1]), ([1, ...],)),
    ((CUBE, [0, 0, 1]), ([1, 0],)),
    ((CUBE, (0, 0, 0)), ()),
]


@pytest.mark.parametrize(("pairs", "out"), LISTS, ids=[str(i) for i in range(len(LISTS))])
def test_lists_of_axes_are_numpys(pairs, out):
    arrays, lists = pairs[::2], pairs[1::2]

    def called(einsum):
        return lambda *ts: einsum(
            *[part for pair in zip(ts, lists, strict=True) for part in pair], *out
        )

    for einsum in (gg.einsum, np.einsum, gg.linalg.einsum):
        same(called(einsum), called(np.einsum), *arrays)


@pytest.mark.parametrize("wrong", [[0, -1], [0, 52], [0, 1.5], [0, "a"], [0, True], "ij", 3])
def test_lists_that_are_no_axes_are_refused(wrong):
    x = gg.placeholder((2, 3))
    with pytest.raises(gg.ShapeError, match="einsum"):
        gg.einsum(x, wrong)
    with pytest.raises(gg.ShapeError, match="einsum"):
        gg.einsum(x, [0])


@pytest.mark.parametrize("subscripts", ["ii->i", "ii", "ii->", "iij->j", "jii->ij", "iii->i"])
def test_a_letter_twice_in_a_term_stands_for_one_length(subscripts):
    rank = len(subscripts.split("->")[0])
    lengths = [2, 3, 4] if rank == 2 or subscripts[0] != "j" else [4, 2, 3]
    wrong = np.ones(lengths[:rank])
    with pytest.raises(ValueError):
        np.einsum(subscripts, wrong)
    with pytest.raises(gg.ShapeError, match="einsum") as error:
        gg.einsum(subscripts, gg.placeholder(wrong.shape))
    assert "float64[" in str(error.value)
    same(
        lambda t: gg.einsum(subscripts, t),
        lambda a: np.einsum(subscripts, a),
        CUBE[(0,) * (3 - rank)],
    )


@pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])
@pytest.mark.parametrize("optimize", [False, True])
def test_unknown_lengths_of_a_letter_are_compared_when_run(backend, optimize):
    for shape in ((None, None), ("n", "m"), (2, None)):
        x = gg.placeholder(shape)
        y = gg.einsum("ii->i", x)
        for t in (y, gg.gradients(y, x)):
            run = gg.compile([x], t, backend=backend, optimize=optimize)
            assert run(np.ones((2, 2))).sum() == 2
            with pytest.raises(gg.ExecutionError, match="einsum"):
                run(np.ones((2, 3)))


def test_the_gradient_of_a_diagonal_of_unknown_lengths():
    x = gg.placeholder((None, None))
    dx = gg.gradients(gg.sum(gg.einsum("ii->i", x) ** 2), x)
    a = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(gg.evaluate(dx, {x: a}), 2 * np.diag(np.diag(a)))
    square = gg.placeholder(("n", "n"))
    assert "EnsureLike" not in [n.type for n in gg.einsum("ii->i", square).graph.nodes[-2:]]
