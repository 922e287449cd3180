"""Functions and modules of PyTorch in a graph: values, gradients, types, and what would be lost."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ops.foreign import torch_arrays

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning:torch", "ignore::FutureWarning:torch"
)
from_torch = gg.interop.from_torch
X = np.array([[0.4, -0.7, 1.1], [-0.2, 0.9, 0.5], [1.5, -1.0, 0.1], [0.3, 0.2, -0.6]])


def network(*more):
    torch.manual_seed(1)
    nn = torch.nn
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), *more, nn.Linear(4, 2)).double()


def sgd(loss, ws):
    return gg.optimizers.SGD(0.01).updates(list(ws), gg.gradients(loss, list(ws)))


def run(tensors, feeds, **options):
    return gg.compile(list(feeds), tensors, **options)(*feeds.values())


@pytest.mark.parametrize("backend", ["numpy", "llvm", pytest.param("jax", marks=pytest.mark.ci)])
def test_a_module_has_the_values_and_gradients_of_torch_to_second_order(backend):
    net = network()
    with gg.Graph() as g:
        x = gg.placeholder(("N", 3))
        y = from_torch(net, x, name="net")
        ws = list(g.variables.trainable)
        dxs = gg.gradients(gg.sum(y * y), [x, *ws])
        again = gg.gradients(gg.sum(dxs[0] ** 2), [x, *ws])
        found = run([y, *dxs, *again], {x: X}, backend=backend)
    assert y.shape == ("N", 2)
    assert g.variables.names[0] == "net/0.weight"
    t, ps = torch.tensor(X, requires_grad=True), list(net.parameters())
    value = net(t)
    grads = torch.autograd.grad((value**2).sum(), [t, *ps], create_graph=True)
    more = torch.autograd.grad((grads[0] ** 2).sum(), [t, *ps], materialize_grads=True)
    for a, b in zip(found, [value, *grads, *more], strict=True):
        np.testing.assert_allclose(a, b.detach().numpy(), atol=1e-14)


def test_structures_go_in_and_come_out():
    def fn(pair, named):
        a, b = pair
        return {"sum": a + b, "rest": [named["k"].argmax(), (a * named["k"],)]}

    with gg.Graph():
        a, k = gg.placeholder((3,)), gg.placeholder((3,))
        found = from_torch(fn, (a, np.array([1.0, 2.0, 3.0])), {"k": k})
        assert found["rest"][0].dtype == np.int64
        da, dk = gg.gradients(found["rest"][1][0], [a, k])
        none, d_sum = gg.gradients(found["sum"], [k, a])
        made = run([found, da, dk, d_sum], {a: X[0], k: X[1]})
    assert none is None
    np.testing.assert_array_equal(made[0]["sum"], X[0] + [1.0, 2.0, 3.0])
    assert made[0]["rest"][0] == 1
    np.testing.assert_array_equal(made[1:], [X[1], X[0], np.ones(3)])


def test_complex_gradients_are_those_of_the_graph_at_both_orders():
    z0 = np.array([1 + 2j, 0.5 - 1j, 2.0])
    found = []
    for torchs in (True, False):
        with gg.Graph():
            z = gg.placeholder((3,), "complex128")
            y = from_torch(lambda z: torch.exp(z) * z.conj(), z) if torchs else np.exp(z) * z.conj()
            dz = gg.gradients(gg.sum(gg.real(y) ** 2 + gg.imag(y) ** 3), z)
            ddz = gg.gradients(gg.sum(gg.real(dz) * gg.imag(dz)), z)
            holomorphic = gg.gradients(y, z, z0)
            found.append(run([y, dz, ddz, holomorphic], {z: z0}))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-9)


DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64"


@pytest.mark.parametrize("dtype", [*DTYPES.split(), "complex128", "bfloat16"])
def test_every_dtype_crosses(dtype):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    for array in (np.ones((2, 3)), np.ones((0, 3)), np.ones(()), np.ones((4, 6))[::-2, ::2]):
        t = torch_arrays.tensor_of(array.astype(dtype))
        back = torch_arrays.array_of(t)
        assert (str(back.dtype), back.shape) == (dtype, array.shape)
    with gg.Graph():
        x = gg.placeholder((2,), dtype)
        y = from_torch(lambda t: t.reshape(2, 1), x)
        made = gg.evaluate(y, {x: np.ones(2, dtype)})
    assert str(made.dtype) == dtype


def test_unknown_lengths_are_known_by_their_names():
    def fn(a, b):
        return a @ b, torch.cat([a, a]), a.T, a.sum(), b[:3]

    with gg.Graph():
        a, b = gg.placeholder(("N", "K")), gg.placeholder(("K", None), name="b")
        shapes = [t.shape for t in from_torch(fn, a, b)]
        M = b.shape[1]
    assert shapes == [("N", M), ("2*N", "K"), ("K", "N"), (), (3, M)]
    with gg.Graph():
        x = gg.placeholder(("N",))
        y = from_torch(lambda t: t[: min(len(t), 3)], x)
        with pytest.raises(gg.ExecutionError, match=r"returned float64\[2\]"):
            gg.evaluate(y, {x: [1.0, 2.0]})
        with pytest.raises(RuntimeError) as error:
            from_torch(lambda t: t.reshape(2, 2), x)
    assert "with primes for unknown lengths" in error.value.__notes__[0]


def test_forward_mode_is_the_transpose():
    net = network()
    with gg.Graph():
        x, u = gg.placeholder((4, 3)), gg.placeholder((4, 3))
        found = run(gg.jvp(from_torch(net, x), x, u), {x: X, u: X[::-1].copy()})
    expected = torch.func.jvp(net, (torch.tensor(X),), (torch.tensor(X[::-1].copy()),))[1]
    np.testing.assert_allclose(found, expected.detach().numpy(), rtol=1e-12)


def test_a_batch_of_examples_is_one_call_with_gradients_of_each():
    net = network()
    with gg.Graph() as g:
        rows, w = gg.placeholder((4, 3)), []

        def one(x):
            y = from_torch(net, x)
            w[:] = list(g.variables.trainable)
            return (y, *gg.gradients(gg.sum(y**3), [x, w[0]]))

        y, dx, dw = gg.vmap(one)(rows)
        twice = gg.vmap(gg.vmap(one))(gg.reshape(rows, (2, 2, 3)))[1]
        found = run([y, dx, dw, twice], {rows: X})
    t = torch.tensor(X)
    for i, row in enumerate(t):
        row.requires_grad_()
        value = net(row)
        expected = torch.autograd.grad((value**3).sum(), [row, net[0].weight])
        for got, right in zip(found, [value, *expected], strict=False):
            np.testing.assert_allclose(got[i], right.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(found[3].reshape(4, 3), found[1], rtol=1e-12)


def test_rules_are_put_around_it_and_on_it():
    def twice(site, dy):
        return [2.0 * d for d in site.default(dy)]

    with gg.Graph():
        x = gg.placeholder((2,))
        with gg.override_gradient(twice):
            y = from_torch(torch.sin, gg.exp(x))
        with gg.gradient_override_map({"TorchCall": lambda site, dy: dy * 5.0}):
            z = from_torch(torch.sin, x)
        dx, dz, plain = gg.gradients(y, x), gg.gradients(z, x), gg.gradients(z, x, overrides="none")
        found = gg.evaluate([dx, dz, plain], {x: X[0, :2]})
    e = np.exp(X[0, :2])
    np.testing.assert_allclose(found, [2 * np.cos(e) * e, [5.0, 5.0], np.cos(X[0, :2])], rtol=1e-12)


def test_bodies_of_control_flow_may_call_it():
    net = network()
    with gg.Graph() as g:
        x = gg.placeholder((3,))
        y = gg.cond(x[0] > 0, lambda: from_torch(net, x), lambda: from_torch(net, 2.0 * x))
        last, _ = gg.scan(lambda c, row: (from_torch(torch.sin, c) + row, c), x, X)
        dx, dw = gg.gradients(gg.sum(y) + gg.sum(last), [x, g.variables[0]])
        assert len(g.variables) == 4
        f = gg.compile(x, [dx, dw, gg.sum(y) + gg.sum(last)])
    for row in (X[0], X[1]):
        t = torch.tensor(row, requires_grad=True)
        c = t
        for each in torch.tensor(X):
            c = torch.sin(c) + each
        loss = net(t if row[0] > 0 else 2 * t).sum() + c.sum()
        expected = torch.autograd.grad(loss, [t, net[0].weight])
        for got, right in zip(f(row), [*expected, loss], strict=True):
            np.testing.assert_allclose(got, right.detach().numpy(), rtol=1e-12)


# --- random numbers, modes, effects -------------------------------------------------------------


def test_dropout_is_the_same_draw_forward_and_backward_and_torchs_generator_stays():
    drop = torch.nn.Dropout(0.5)
    with gg.Graph(seed=3) as g:
        x = gg.placeholder((50,))
        y = from_torch(drop, x)
        dx = gg.gradients(y, x)
        f = gg.compile(x, [y, dx])
        before = torch.get_rng_state()
        (y1, dx1), (y2, dx2) = f(np.ones(50)), f(np.ones(50))
        assert torch.equal(before, torch.get_rng_state())
    np.testing.assert_array_equal(y1, dx1)
    np.testing.assert_array_equal(y2, dx2)
    assert not np.array_equal(y1, y2)
    assert set(y1) == {0.0, 2.0}
    assert g.state.runs == 2


def test_what_is_recomputed_is_the_same_draw():
    with gg.Graph():
        x = gg.placeholder((50,))
        y = gg.rules.checkpoint(lambda x: from_torch(torch.nn.Dropout(0.5), x * x))(x)
        loss = gg.sum(y * y)
        value, dx = gg.evaluate([y, gg.gradients(loss, x)], {x: np.ones(50)})
    np.testing.assert_allclose(dx, 4.0 * value * (value > 0) * 2.0)


def test_in_evaluation_mode_nothing_is_drawn_and_another_mode_is_an_error():
    drop = torch.nn.Dropout(0.5).eval()
    with gg.Graph() as g:
        f = gg.compile(x := gg.placeholder((3,)), from_torch(drop, x))
        assert f(X[0]).tolist() == X[0].tolist()
        assert g.state.runs == 0
        drop.train()
        with pytest.raises(gg.ExecutionError, match="evaluation mode"):
            f(X[0])


def test_what_writes_into_its_inputs_is_given_copies():
    constant = np.array([-1.0, 2.0])
    with gg.Graph():
        c = gg.constant(constant)
        x = gg.placeholder((2,))
        y = from_torch(torch.nn.ReLU(inplace=True), x)
        z = from_torch(lambda a, b: a.data.add_(1.0) + b.mul_(2), x, c)
        f = gg.compile(x, [y, z, gg.gradients(y, x), c + x])
        fed = constant.copy()
        fed.flags.writeable = False
        for _ in range(2):
            found = f(fed)
    np.testing.assert_array_equal(found, [[0.0, 2.0], [-2.0, 7.0], [0.0, 1.0], [-2.0, 4.0]])
    np.testing.assert_array_equal(fed, constant)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_results_share_no_memory_with_inputs_or_constants_or_torch(backend):
    kept = torch.zeros(2, dtype=torch.float64)
    with gg.Graph():
        x, c = gg.placeholder((2,)), gg.constant([1.0, 2.0])
        ys = from_torch(lambda x, c: (x, x[:1], c, kept), x, c)
        f = gg.compile(x, [*ys, 2.0 * ys[3], c + 0.0], backend=backend)
        fed = np.ones(2)
        for y in f(fed):
            y += 7.0
        again = f(fed)
    np.testing.assert_array_equal(fed, [1.0, 1.0])
    np.testing.assert_array_equal(again[2], [1.0, 2.0])
    assert not kept.any()


def test_parameters_that_would_get_no_gradient_are_an_error():
    net = network()
    with gg.Graph():
        x = gg.placeholder((4, 3))
        with pytest.raises(gg.GradientError, match=r"\(4, 3\).*the module itself"):
            from_torch(lambda t: net(t), x)
        y = from_torch(lambda t: net(t), x, parameters="constants")
        with torch.no_grad():
            frozen = {k: p.clone() for k, p in net.named_parameters()}
        z = from_torch(lambda t: torch.func.functional_call(net, frozen, (t,)), x)
        w = from_torch(lambda t: t @ net[0].weight.detach().T, x)
        value, other, _, dx = gg.evaluate([y, z, w, gg.gradients(y, x)], {x: X})
    np.testing.assert_array_equal(value, other)
    np.testing.assert_allclose(
        dx, torch.func.jacrev(lambda t: net(t).sum())(torch.tensor(X)).detach()
    )


@pytest.mark.parametrize("fn", [torch.nn.BatchNorm1d(3).double(), None])
def test_a_write_to_what_is_no_input_is_an_error(fn):
    count = torch.zeros(2)

    def counts(t):
        count[0] += 1
        return t * 1.0

    with gg.Graph(), pytest.raises(gg.GraphError, match=r"writes into tensors.*\.eval\(\)"):
        from_torch(fn or counts, gg.placeholder((4, 3)))
    assert not count.any()


def test_batch_normalisation_in_evaluation_mode():
    norm = torch.nn.BatchNorm1d(3).double().eval()
    with gg.Graph():
        x = gg.placeholder((None, 3))
        np.testing.assert_allclose(
            gg.evaluate(from_torch(norm, x), {x: X}), norm(torch.tensor(X)).detach()
        )


# --- parameters ---------------------------------------------------------------------------------


def test_a_module_called_twice_has_one_set_of_variables_and_training_them_leaves_it_alone():
    net = network()
    start = net[0].weight.detach().clone()
    net[2].bias.requires_grad_(False)
    with gg.Graph() as g:
        x = gg.placeholder((4, 3))
        y = from_torch(net, x) + from_torch(net, -x)
        assert g.variables.names == [f"Sequential/{n}" for n, _ in net.named_parameters()]
        assert len(g.variables.trainable) == 3
        loss = gg.sum(y * y)
        step = gg.compile(x, loss, updates=sgd(loss, g.variables.trainable))
        losses = [float(step(X)) for _ in range(5)]
        values = {n: g.state[g.variables[f"Sequential/{n}"]] for n, _ in net.named_parameters()}
    assert losses[-1] < losses[0]
    assert torch.equal(net[0].weight, start)
    net.load_state_dict({n: torch.tensor(v) for n, v in values.items()})
    assert not torch.equal(net[0].weight, start)
    with gg.Graph() as other:
        from_torch(net, gg.placeholder((3,)))
        np.testing.assert_array_equal(other.state[other.variables[0]], values["0.weight"])


def test_parameters_can_be_constants_or_given():
    net = network()
    names = [n for n, _ in net.named_parameters()]
    with gg.Graph() as g:
        x = gg.placeholder((4, 3))
        y = from_torch(net, x, parameters="constants")
        assert len(g.variables) == 0
        ws = {n: gg.placeholder(tuple(p.shape)) for n, p in net.named_parameters()}
        z = from_torch(net, x, parameters=ws)
        with pytest.raises(gg.GraphError, match=r"\['0.weight'\], and has \['w'\]"):
            from_torch(net, x, parameters={n.replace("0.weight", "w"): ws[n] for n in names})
        with pytest.raises(gg.ShapeError, match=r"'0\.bias' is"):
            from_torch(net, x, parameters=ws | {"0.bias": np.ones(3)})
        with pytest.raises(ValueError, match='is "variables"'):
            from_torch(net, x, parameters="trained")
        with pytest.raises(TypeError, match="for a module"):
            from_torch(torch.sin, x, parameters={})
        fed = {ws[n]: p.detach().numpy() for n, p in net.named_parameters()}
        found = gg.evaluate([y, z], {x: X} | fed)
    np.testing.assert_array_equal(*found)


# --- what cannot be traced; files; errors -------------------------------------------------------


def positive_part(t):
    return t[t > 0] if float(t.detach().sum()) > 0 else t * 0.0


def test_what_depends_on_values_needs_its_types():
    with gg.Graph():
        x = gg.placeholder((3,))
        with pytest.raises(RuntimeError) as error:
            from_torch(positive_part, x)
        assert "out_types" in error.value.__notes__[-1]
        y = from_torch(positive_part, x, out_types=[((None,), "float64")])
        dx = gg.gradients(gg.sum(y * y), x)
        f = gg.compile(x, [y, dx])
    for row in (X[0], -X[0]):
        value, slope = f(row)
        kept = row * (row > 0) * (row.sum() > 0)
        np.testing.assert_allclose(slope, 2 * kept)
        np.testing.assert_allclose(value.sum(), kept.sum())
    assert X[0].tolist() == [0.4, -0.7, 1.1]


def test_what_is_not_traced_is_watched():
    net = network()
    types = [((3,), "float64")]
    with gg.Graph():
        x = gg.placeholder((3,))
        bad = [
            (lambda t: torch.rand_like(t), gg.ExecutionError, "draws random"),
            (lambda t: t * net[2].bias.sum(), gg.GradientError, "require a gradient"),
            (lambda t: t.float(), gg.ExecutionError, "float32"),
        ]
        for fn, error, said in bad:
            with pytest.raises(error, match=said):
                gg.evaluate(from_torch(fn, x, out_types=types), {x: X[0]})


def test_a_file_has_its_name_alone(tmp_path):
    def wave(t):
        return torch.sin(t) * 2.0

    with gg.Graph() as g:
        x = gg.placeholder(("N",), name="x")
        y = from_torch(wave, x)
        f = gg.compile(x, [y, gg.gradients(y, x)])
        with pytest.raises(gg.FileError, match="wave"):
            gg.save(tmp_path / "a.gg", g, functions={"f": f})
        with pytest.raises(gg.ExportError, match="TorchCall"):
            gg.export_numpy(f, tmp_path / "f.py")
        gg.register_function("tests/wave")(wave)
        gg.save(tmp_path / "a.gg", g, functions={"f": f})
    loaded = gg.load(tmp_path / "a.gg").functions["f"]
    np.testing.assert_allclose(loaded(X[0]), [2 * np.sin(X[0]), 2 * np.cos(X[0])])


def test_errors_say_what_is_wrong():
    def breaks(t):
        raise KeyError("mine")

    with gg.Graph():
        x = gg.placeholder((3,))
        with pytest.raises(KeyError, match="mine") as error:
            from_torch(breaks, x)
        assert "traced 'breaks'" in error.value.__notes__[-1]
        for fn in (lambda t: 1.0, lambda t: [t, None]):
            with pytest.raises(gg.DTypeError, match="to return tensors of torch"):
                from_torch(fn, x)
        with pytest.raises(gg.ShapeError, match="no tensor"):
            from_torch(lambda t: (), x)
        with pytest.raises(TypeError, match="function or module"):
            from_torch(3, x)
        with pytest.raises(gg.DTypeError):
            from_torch(torch.sin, None)


def test_without_torch_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr(torch_arrays, "torch", None)
    x = gg.placeholder((2,))
    for make in (lambda: from_torch(abs, x), lambda: gg.interop.to_torch(gg.compile(x, x))):
        with pytest.raises(gg.GraphGradError, match=r"pip install 'graphgrad\[torch\]'"):
            make()


def squared_and_scaled(x, y):
    return x * x * y, x.sum()


def sampled(rng):
    """A function of torch, its gradient, and its gradient by one input of one output."""
    arrays = [rng.normal(size=(2, 3)), rng.normal(size=(2, 3))]
    with gg.Graph():
        x, y = (gg.placeholder((2, 3)) for _ in range(2))
        made = from_torch(squared_and_scaled, x, y)
        for seeds, wrt in (((made[0], made[1]), (x, y)), (made[:1], (y,))):
            found = gg.gradients(seeds, wrt)
            yield found[0].node.op, [*arrays, *(rng.normal(size=t.shape) for t in seeds)]
    yield made[0].node.op, arrays


@pytest.mark.ci
def test_the_laws_of_all_ops_hold(monkeypatch):
    op_type = gg.op_types()["TorchCall"]
    monkeypatch.setattr(op_type, "samples", classmethod(lambda cls, rng: sampled(rng)))
    report = gg.extend.check_op(op_type)
    assert report.ok, str(report)


def test_lengths_by_arithmetic_are_known_and_others_are_not():
    def fn(a, b):
        return torch.cat([a, b]), a[1:], torch.cat([a, b, b]), a[::2], torch.outer(a, b).reshape(-1)

    with gg.Graph():
        a, b = gg.placeholder(("N",)), gg.placeholder((2 * gg.Length("M") + 1,))
        found = from_torch(fn, a, b)
        assert [t.shape[0] for t in found] == ["2*M + N + 1", "N - 1", None, None, None]
        values = gg.evaluate([gg.zeros_like(t) for t in found], {a: np.ones(4), b: np.ones(3)})
    assert [v.shape for v in values] == [(7,), (3,), (10,), (2,), (12,)]


def test_S13_what_is_meant_for_its_inside_is_an_error_that_says_how_to_open_it():
    with gg.Graph() as graph:
        gg.interop.from_torch(torch.relu, gg.placeholder((3,)))
        with pytest.raises(gg.RegionError, match=r"(?s)is one node.*gg\.interop\.open_torch"):
            graph.mark(gg.select.op("Relu"), gg.rules.guided())
