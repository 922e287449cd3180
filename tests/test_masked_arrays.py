"""A masked array is refused wherever arrays come in: its mask would be lost."""

import numpy as np
import pytest

import graphgrad as gg

MASKED = np.ma.masked_array([1.0, 99.0], [False, True])


def test_a_masked_array_is_refused_as_a_feed_and_the_error_says_what_to_do():
    x = gg.placeholder((2,), name="x")
    for backend in ("numpy", "llvm"):
        run = gg.compile([x], gg.sum(x), backend=backend)
        run(np.ones(2))
        with pytest.raises(gg.DTypeError, match=r"'x'.*\.filled\(") as error:
            run(MASKED)
        assert "test_masked_arrays.py" in str(error.value)
        assert run(MASKED.filled(0)) == 1
    with pytest.raises(gg.DTypeError, match="masked"):
        gg.evaluate(gg.sum(x), {x: MASKED})
    with pytest.raises(gg.DTypeError, match="masked"):
        gg.evaluate(gg.sum(gg.placeholder((1, 2), name="y")), {"y": [MASKED]})


def test_a_masked_array_is_refused_where_nodes_are_built():
    x = gg.placeholder((2,))
    y = gg.sin(x)
    for take in (
        lambda: gg.constant(MASKED),
        lambda: gg.constant([MASKED, MASKED]),
        lambda: gg.variable(MASKED),
        lambda: x + MASKED,
        lambda: gg.maximum(x, MASKED),
        lambda: gg.full((2,), np.ma.masked),
        lambda: x[np.ma.masked_array([0, 1], [False, True])],
        lambda: gg.gradients(y, x, MASKED),
        lambda: gg.jvp(y, x, MASKED),
    ):
        with pytest.raises(gg.DTypeError, match="masked"):
            take()


def test_a_masked_array_is_refused_as_a_state_and_from_functions():
    v = gg.variable(np.zeros(2), name="v")
    with pytest.raises(gg.DTypeError, match="masked"):
        gg.State()[v] = MASKED
    x = gg.placeholder((2,))
    with gg.override_gradient(lambda site, dy: MASKED):
        y = gg.sin(x)
    with pytest.raises(gg.DTypeError, match="masked"):
        gg.gradients(y, x)
    y = gg.py_function(lambda a: MASKED, [x], [((2,), "float64")])
    with pytest.raises(gg.DTypeError, match="masked"):
        gg.evaluate(y, {x: np.ones(2)})


def test_other_kinds_of_arrays_come_in_as_ever():
    kind = type("Kind", (np.ndarray,), {})
    x = gg.placeholder((2,))
    assert gg.evaluate(gg.sum(x), {x: np.array([1.0, 2.0]).view(kind)}) == 3
    assert gg.evaluate(gg.sum(x), {x: (1, 2)}) == 3
