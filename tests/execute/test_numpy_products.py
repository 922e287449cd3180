"""Products of numbers that the BLAS does not take: exact for integers, rounded once for float16."""

import numpy as np
import pytest

import graphgrad as gg


def product(a, b):
    with gg.Graph():
        x, y = gg.placeholder(a.shape, a.dtype), gg.placeholder(b.shape, b.dtype)
        return gg.compile([x, y], x @ y, backend="numpy")(a, b)


@pytest.mark.parametrize("dtype", [f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)])
@pytest.mark.parametrize("least", [True, False])
def test_integers_wrap_as_numpys_do(dtype, least):
    """The largest numbers there are, for which float64 may or may not hold every sum."""
    rng = np.random.default_rng(0)
    info = np.iinfo(dtype)
    a, b = (rng.integers(info.min, info.max, s, dtype, True) for s in ((3, 40, 50), (60, 50)))
    if least:
        a[0, 0], b[0] = info.min, info.min
    np.testing.assert_array_equal(product(a, b.T), a @ b.T)
    small = (a % 7).astype(dtype)
    np.testing.assert_array_equal(product(small, b.T), small @ b.T)


def test_float16_is_summed_in_float32():
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=s).astype("float16") for s in ((64, 900), (64, 900)))
    found = product(a, b.T)
    assert found.dtype == "float16"
    right = a.astype(float) @ b.T.astype(float)
    assert np.max(np.abs(found - right)) <= 0.5005 * np.max(np.spacing(np.abs(found)))
    large = np.full((64, 64), 200, "float16")
    assert np.isinf(product(large, large)).all()


@pytest.mark.parametrize("seed", range(40))
def test_einsums_of_any_two_operands(seed):
    """Letters anywhere, lengths of 1 that are broadcast, and what only one operand has."""
    rng = np.random.default_rng(seed)
    lengths = dict(zip("abcde", rng.integers(1, 5, 5), strict=True))
    terms = ["".join(rng.permutation([*lengths])[: rng.integers(1, 5)]) for _ in range(2)]
    known = sorted({*terms[0], *terms[1]})
    out = "".join(rng.permutation(known)[: rng.integers(0, len(known) + 1)])
    shapes = [tuple(1 if rng.random() < 0.2 else int(lengths[c]) for c in t) for t in terms]
    arrays = [rng.normal(size=s) for s in shapes]
    equation = f"{','.join(terms)}->{out}"
    with gg.Graph():
        xs = [gg.placeholder(s) for s in shapes]
        run = gg.compile(xs, gg.einsum(equation, *xs), backend="numpy", optimize=False)
    np.testing.assert_allclose(run(*arrays), np.einsum(equation, *arrays), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("equation", "dtype"), [("i,ij,j->", "float64"), ("i,i->", "int64")])
def test_sums_of_everything_are_not_written_by_einsum(equation, dtype, monkeypatch):
    """NumPy 2.4.0 to 2.4.4 fail there with an IndexError."""
    arrays = [
        np.arange(1, 3 ** len(t) + 1, dtype=dtype).reshape((3,) * len(t))
        for t in equation[:-2].split(",")
    ]
    wanted, einsum = np.einsum(equation, *arrays), np.einsum

    def faulty(*operands, out=None, **how):
        assert out is None or out.ndim
        return einsum(*operands, out=out, **how)

    with gg.Graph():
        xs = [gg.placeholder(a.shape, dtype) for a in arrays]
        run = gg.compile(xs, gg.einsum(equation, *xs), backend="numpy", optimize=False)
    monkeypatch.setattr(np, "einsum", faulty)
    np.testing.assert_array_equal(run(*arrays), wanted)
