"""bfloat16: kept in 16 bits, computed with in float32, rounded once an op; the same everywhere."""

import copy
import importlib.util
import pickle

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base import kinds
from graphgrad.execute.kernels import one_call_per_node
from graphgrad.execute.numpy.kernels import KERNELS
from graphgrad.ir.program import Program
from graphgrad.lower.widen import widen

from ..each import each
from ..laws.cases import CASES, placed

pytest.importorskip("ml_dtypes")
SHORT = gg.bfloat16
INSTALLED = {"llvm": "llvmlite", "jax": "jax"}
BACKENDS = ["numpy", *[b for b, package in INSTALLED.items() if importlib.util.find_spec(package)]]
OWN = ("RandomUniform", "Recurrence", "Spacing", "NextAfter")
"""Fewer bits are drawn; steps of its body are ops; two are about the format itself."""


def of(op, arrays, dtype):
    """An op on numbers that bfloat16 holds, where it has floats, as another dtype."""
    if op._interned:
        floats = [n for n, v in op.attrs.items() if isinstance(v, np.dtype) and v.kind == "f"]
        op = op.replace(**dict.fromkeys(floats, np.dtype(dtype)))
    floats = [a.dtype.kind == "f" for a in arrays]
    arrays = [a.astype(SHORT).astype(dtype) if f else a for a, f in zip(arrays, floats)]
    return op, arrays


def wide(array):
    """What can be compared."""
    return array.astype(np.float32) if array.dtype == SHORT else array


def same(got, want):
    """Bit for bit, but for the bits of NaN."""
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_array_equal(wide(got), wide(want))


FLOATING = [c for c in CASES if any(a.dtype.kind == "f" for a in c[2]) and c[1].type not in OWN]


@each(FLOATING)
def test_an_op_is_that_of_float32_rounded_once(op, arrays):
    """Or it says that it does not take bfloat16."""
    short, shorts = of(op, arrays, SHORT)
    try:
        xs, node = placed(short, shorts)
    except gg.DTypeError:
        return
    run = one_call_per_node(Program(xs, node.outputs), KERNELS)
    like, wides = of(op, arrays, np.float32)
    ws, float32 = placed(like, wides)
    expected = one_call_per_node(Program(ws, float32.outputs), KERNELS)(*wides)
    with np.errstate(all="ignore"):
        for got, want, t in zip(run(*shorts), expected, node.outputs, strict=True):
            same(got, want.astype(t.dtype))


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_numbers_beside_one_are_those_of_bfloat16(backend, optimize):
    x = np.array([1, 2, -3, 0, -0.0, 1e-40, 3.3e38, np.inf, np.nan], SHORT)
    y = np.array([0, np.inf, 0, 1, -1, 0, np.inf, 0, 0], SHORT)
    with gg.Graph():
        a, b = gg.placeholder(x.shape, SHORT), gg.placeholder(y.shape, SHORT)
        outputs = [gg.spacing(a), gg.nextafter(a, b), gg.spacing(a * 1), gg.exp(gg.nextafter(a, b))]
        got = gg.compile([a, b], outputs, backend=backend, optimize=optimize)(x, y)
    with np.errstate(all="ignore"):
        beside = np.nextafter(x, y)
        wanted = [np.spacing(x), beside, np.spacing(x), np.exp(wide(beside)).astype(SHORT)]
    for found, want in zip(got, wanted, strict=True):
        same(found, want)


def network():
    """(inputs, outputs, arrays): value and gradients through products, reductions, constants."""
    rng = np.random.default_rng(0)
    with gg.Graph():
        x = gg.placeholder((6, 20), SHORT, name="x")
        w = gg.placeholder((20, 5), SHORT, name="w")
        y = gg.nn.softmax(gg.tanh(x @ w + 0.3) * 1.1, -1)
        image = gg.nn.conv(gg.reshape(x, (-1, 5, 4, 1)), gg.reshape(w[:4], (2, 2, 1, 5)))
        loss = gg.logsumexp(x @ w) + gg.mean(y**3) + gg.sum(image) / 7
        dx, dw = gg.gradients(loss, [x, w])
        ddw = gg.gradients(gg.sum(dw * dw), w)
        running = gg.scan(lambda s, row: (s * 0.5 + row, s), gg.zeros(20, SHORT), x)[0]
    arrays = [rng.normal(size=shape).astype(SHORT) for shape in ((6, 20), (20, 5))]
    return [x, w], [y, loss, dx, dw, ddw, running, gg.argmax(x, 1), gg.cast(y, "int8")], arrays


def test_backends_agree_on_a_network_and_its_gradients():
    inputs, outputs, arrays = network()
    assert {t.dtype for t in outputs[:-2]} == {SHORT}
    expected = gg.compile(inputs, outputs, backend="numpy", optimize=False)(*arrays)
    for backend in BACKENDS:
        wanted = outputs[:4] if backend == "jax" else outputs  # XLA takes long for the others
        found = gg.compile(inputs, wanted, backend=backend)(*arrays)
        for got, want in zip(found, expected, strict=False):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(wide(got), wide(want), rtol=2**-6, atol=2**-8)


def test_every_op_of_a_chain_rounds_on_every_backend():
    """None of them keeps more digits between two ops, as XLA does if it is let."""
    a = np.random.default_rng(1).normal(size=3000).astype(SHORT)
    with gg.Graph():
        x = gg.placeholder(a.shape, SHORT)
        y = ((x * 1.1 + 0.3) * x - 0.7) / (x * x + 1)
    one = SHORT.type
    want = ((a * one(1.1) + one(0.3)) * a - one(0.7)) / (a * a + one(1))
    for backend in BACKENDS:
        same(gg.compile([x], y, backend=backend)(a), want)


@pytest.mark.parametrize("backend", BACKENDS)
def test_casts_round_to_the_nearest_even_and_keep_what_is_not_finite(backend):
    bits = np.random.default_rng(2).integers(0, 2**32, 20_000, dtype=np.uint32)
    edges = np.uint32([0x3F808000, 0x3F818000, 0x7F7FFFFF, 0x7F800000, 0xFFC00000, 1, 1 << 31])
    numbers = np.concatenate([bits, edges]).view(np.float32)
    with gg.Graph():
        x = gg.placeholder(numbers.shape, "float32")
        short = gg.cast(x, SHORT)
        f = gg.compile([x], [short, gg.cast(short, "float32")], backend=backend)
    with np.errstate(all="ignore"):
        got, back = f(numbers)
        same(got, numbers.astype(SHORT))
        np.testing.assert_array_equal(back, numbers.astype(SHORT).astype(np.float32))
    assert np.array_equal(
        np.signbit(back), np.signbit(numbers) | np.isnan(numbers) & np.signbit(back)
    )


def test_casts_are_differentiable_and_round_the_gradient():
    with gg.Graph():
        x = gg.placeholder((), "float32")
        dx = gg.gradients(gg.cast(x, SHORT) * 1.01, x)
        assert dx.dtype == np.float32
        assert gg.evaluate(dx, {x: 3.0}) == np.float32(SHORT.type(1.01))


def test_sums_do_not_stop_growing():
    """Added up in bfloat16, ones would not come beyond 256."""
    assert gg.evaluate(gg.sum(gg.ones(3000, SHORT))) == SHORT.type(3000)
    assert gg.evaluate(gg.ones((1, 3000), SHORT) @ gg.ones((3000, 1), SHORT)) == SHORT.type(3000)


PROMOTED = [
    *[(d, "bfloat16") for d in ("bool", "int8", "uint16", "int64", "uint64", "bfloat16")],
    *[("float16", "float32"), ("float32", "float32"), ("float64", "float64")],
    *[("complex64", "complex64"), ("complex128", "complex128")],
]


@pytest.mark.parametrize(("other", "together"), PROMOTED)
def test_promotion(other, together):
    x, y = gg.zeros(2, SHORT), gg.zeros(2, other)
    assert (x + y).dtype == (y + x).dtype == gg.result_type(SHORT, other) == np.dtype(together)


def test_promotion_of_numbers_and_three_operands():
    x = gg.ones(2, SHORT)
    assert (x + 1).dtype == (1.5 - x).dtype == gg.sqrt(x).dtype == (x / 2).dtype == SHORT
    assert (x + 1j).dtype == np.complex64
    assert (np.float32(2) * x).dtype == np.float32
    assert gg.result_type(SHORT, "int64", "float16") == np.float32
    assert gg.can_cast(SHORT, "float32")
    assert gg.can_cast("uint8", SHORT)
    assert not gg.can_cast("float16", SHORT)
    assert not gg.can_cast(SHORT, "float16")
    assert gg.isdtype(SHORT, "real floating")
    assert gg.finfo(SHORT).eps == 2**-7


def test_what_can_be_fed():
    with gg.Graph():
        x, n = gg.placeholder((2,), SHORT), gg.placeholder((2,), "int32")
        f, g = gg.compile([x], x + 1), gg.compile([n], n)
    for fed in ([1, 2], np.ones(2), np.ones(4, SHORT)[::2], np.array([True, False])):
        same(f(np.asarray(fed)), np.asarray(fed).astype(SHORT) + SHORT.type(1))
    with pytest.raises(gg.DTypeError, match="cannot take complex128"):
        f(np.ones(2) * 1j)
    with pytest.raises(gg.DTypeError, match="cannot take bfloat16"):
        g(np.ones(2, SHORT))


def test_numbers_of_a_widened_program_cannot_be_written():
    x = gg.placeholder((3,), "bfloat16")
    found = widen(Program([x], [x * gg.constant(2.0, "bfloat16")]))
    (number,) = [n.op.value for n in found.nodes if n.type == "Constant"]
    assert (number.dtype, number.flags.writeable) == (np.float32, False)


def test_rules_are_applied_in_bfloat16():
    with gg.Graph():
        x = gg.placeholder((3,), SHORT)
        with gg.override_gradient(lambda site, dy: 3 * dy):
            y = gg.exp(x)
        dx = gg.gradients(gg.sum(y), x)
        tangent = gg.jvp(y, x, gg.ones(3, SHORT))
        rows = gg.vmap(lambda e: gg.gradients(gg.exp(e) * 2, e))(x)
    got = gg.evaluate([dx, tangent, rows], {x: np.zeros(3)})
    for one, want in zip(got, (3, 3, 2), strict=True):
        same(one, np.full(3, want, SHORT))


def test_graphs_are_copied_pickled_and_shown():
    with gg.Graph() as graph:
        x = gg.placeholder((2,), SHORT, name="x")
        y = gg.exp(x) * gg.constant(2.5, SHORT)
    for other in (copy.copy(graph), graph.copy(), pickle.loads(pickle.dumps(graph))):
        assert other.nodes[-1].outputs[0].type is y.type
        found = gg.evaluate(other.nodes[-1].outputs[0], {other.tensor("x:0"): [0, 1]})
        same(found, gg.evaluate(y, {x: [0, 1]}))
    assert "bf16[2]" in gg.graph_text(graph)
    assert "bf16[2]" in gg.to_dot(graph)
    assert repr(y.type) == "bfloat16[2]"


@pytest.mark.parametrize("backend", BACKENDS)
def test_small_steps_of_an_optimiser_add_up(backend):
    """A step of 1e-3 is less than half of what tells 1 from the number below it."""
    ends = []
    for dtype in (SHORT, "float32"):
        with gg.Graph():
            w = gg.variable(np.ones(2), dtype=dtype, name="w")
            updates = gg.optimizers.Adam(1e-3).updates([w], gg.gradients(gg.sum(w) * 0.01, [w]))
            step = gg.compile([], w, updates=updates, backend=backend)
            ends.append([step() for _ in range(100)][-1])
    assert {t.node.name: t.dtype for t in updates}["w/adam_v"] == np.float32
    np.testing.assert_allclose(wide(ends[0]), ends[1], rtol=2**-8)
    assert (ends[1] < 0.91).all()


def test_draws_are_the_same_on_every_backend_and_never_1():
    with gg.Graph():
        draws = [gg.random.uniform((5000,), seed=1, dtype=SHORT)]
        draws += [gg.random.normal((5000,), seed=1, dtype=SHORT)]
        draws += [gg.random.exponential((5000,), seed=1, dtype=SHORT)]
    want = gg.compile([], draws, backend="numpy")()
    assert 0 <= wide(want[0]).min() < wide(want[0]).max() == 255 / 256
    assert abs(wide(want[1]).mean()) < 0.05 > abs(wide(want[1]).std() - 1)
    assert np.isfinite(wide(want[2])).all()
    for backend in BACKENDS[1:]:
        for got, one in zip(gg.compile([], draws, backend=backend)(), want, strict=True):
            same(got, one)


def test_what_needs_lapack_says_what_it_takes():
    with pytest.raises(gg.DTypeError, match="inv takes matrices of 32 or 64 bits, got bfloat16"):
        gg.linalg.inv(gg.ones((2, 2), SHORT))


def test_without_ml_dtypes_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(kinds, "_ml_dtypes", None)
    with pytest.raises(gg.DTypeError, match=r"pip install 'graphgrad\[bfloat16\]'"):
        _ = gg.bfloat16
    with pytest.raises(AttributeError, match="no attribute 'bfloat17'"):
        _ = gg.bfloat17


def test_files_keep_every_bit(tmp_path):
    many = np.random.default_rng(3).integers(0, 2**16, 999, dtype=np.uint16).view(SHORT)
    few, one = many[:3], np.full(9, SHORT.type(0.1))
    with gg.Graph() as graph:
        gg.variable(many, name="many")
        for value in (few, one, one[0]):
            gg.constant(value)
    assert graph.nodes[0].op.trainable
    gg.save(tmp_path / "graph.gg", graph)
    loaded = gg.load(tmp_path / "graph.gg").graph
    for node, want in zip(loaded.nodes, (many, few, one, one[0]), strict=True):
        value = gg.evaluate(node.outputs[0])
        assert (value.dtype, value.tobytes()) == (SHORT, want.tobytes())
    with pytest.raises(gg.DTypeError, match=r"many: \.npz has no bfloat16; write \.safetensors"):
        gg.export_weights(tmp_path / "w.npz", graph.state)
    pytest.importorskip("safetensors")
    gg.export_weights(tmp_path / "w.safetensors", {"many": many, "b": [True], "i": np.int64([2])})
    found = gg.import_weights(tmp_path / "w.safetensors")
    assert [(n, a.dtype.name) for n, a in found.items()] == [
        *(("b", "bool"), ("i", "int64"), ("many", "bfloat16"))
    ]
    assert found["many"].tobytes() == many.tobytes()
