"""Complex numbers are in NumPy's order: by the real part, ties by the imaginary one."""

import numpy as np
import pytest

import graphgrad as gg

rng = np.random.default_rng(0)
TIES = (rng.integers(0, 3, (4, 6)) + 1j * rng.integers(0, 3, (4, 6))).astype(complex)
LOST = TIES.copy()
LOST[0, 1] = np.nan
LOST[1, [0, 2, 3]] = complex(np.nan, 2), complex(1, np.nan), complex(np.nan, np.nan)
LOST[2, 3] = complex(2, np.nan)
LOST[3, :3] = complex(-np.inf, 1), np.inf, complex(2, np.nan)
PAIRS = ("less", "less_equal", "greater", "greater_equal", "maximum", "minimum", "fmax", "fmin")


def outputs(x, y, module):
    """Everything that goes by the order."""
    stable = {"stable": True}
    return [
        *(getattr(module, name)(x, y) for name in PAIRS),
        *(getattr(module, n)(x, axis=a) for n in ("argmax", "argmin") for a in (0, None)),
        *(getattr(module, n)(x, axis=a) for n in ("max", "min") for a in (1, (0, 1))),
        module.max(x, axis=0, keepdims=True),
        *(getattr(module, n)(x, axis=a, **stable) for n in ("sort", "argsort") for a in (1, None)),
        module.clip(x, 1 + 1j, 2),
        module.median(y, axis=1),
    ]


@pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])
def test_the_order_is_that_of_numpy_nan_too(backend):
    with gg.Graph():
        x, y = gg.placeholder((4, None), "complex128"), gg.placeholder((4, None), "complex128")
        f = gg.compile([x, y], outputs(x, y, gg), backend=backend)
    for a in (TIES, LOST):
        with np.errstate(invalid="ignore"):
            wanted = outputs(a, TIES[::-1], np)
        for i, (g, w) in enumerate(zip(f(a, TIES[::-1]), wanted, strict=True)):
            assert g.dtype == w.dtype
            np.testing.assert_array_equal(g, w, err_msg=str(i))
            np.testing.assert_array_equal(np.isnan(g.real), np.isnan(w.real))


def test_the_gradient_goes_to_the_first_that_is_taken():
    with gg.Graph():
        x = gg.constant([1 + 1j, 1 + 2j, 1 + 2j, 0])
        y = gg.constant([1 + 1j, 1 + 3j, 1 + 1j, 0])
        for loss, wanted in (
            (gg.real(gg.max(x)), [0, 1, 0, 0]),
            (gg.real(gg.sort(x)[0]), [0, 0, 0, 1]),
            (gg.sum(gg.real(gg.maximum(x, y))), [1, 0, 1, 1]),
            (gg.sum(gg.real(gg.clip(x, 1, 1 + 1j))), [1, 0, 0, 0]),
        ):
            (dx,) = gg.gradients([loss], [x])
            np.testing.assert_array_equal(gg.evaluate(dx), wanted)


def test_examples_of_a_batch_have_their_own_extremum():
    with gg.Graph():
        x = gg.constant(TIES)
        found = gg.evaluate([gg.vmap(gg.max)(x), gg.vmap(gg.argsort)(x)])
    np.testing.assert_array_equal(found[0], TIES.max(1))
    np.testing.assert_array_equal(found[1], TIES.argsort(1, stable=True))
    with gg.Graph(), pytest.raises(gg.ShapeError, match="no elements"):
        gg.max(gg.placeholder((0,), "complex64"))
