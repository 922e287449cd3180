"""Compiled functions in PyTorch: their gradients are those of their rules, at every order."""

import copy
import gc
import pickle

import numpy as np
import pytest

import graphgrad as gg

from .. import opens

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning:torch", "ignore::FutureWarning:torch"
)
to_torch = gg.interop.to_torch
BACKENDS = ["numpy", "llvm", pytest.param("jax", marks=pytest.mark.ci)]
WEIGHTS = np.arange(6.0).reshape(3, 2) / 5


def compiled(backend="numpy", rule=None):
    """(x @ w).tanh() * scale * n, with a rule on the tanh, and a whole number beside it."""
    with gg.Graph():
        x, n = gg.placeholder(("N", 3), name="x"), gg.placeholder((), "int32", name="n")
        w = gg.variable(WEIGHTS, name="w")
        scale = gg.variable(2.0, name="training", trainable=False)
        h = x @ w
        if rule is None:
            y = gg.tanh(h)
        else:
            with gg.override_gradient(rule):
                y = gg.tanh(h)
        outputs = {"y": y * scale * gg.cast(n, "float64"), "k": [gg.argmax(y, axis=1), None]}
        return gg.compile([x, n], outputs, backend=backend)


def tripled(site, dy):
    return 3.0 * dy * site.inputs[0]


def point(*shape):
    torch.manual_seed(0)
    return torch.randn(*(shape or (4, 3)), dtype=torch.float64, requires_grad=True)


def by_hand(x, w):
    """The gradient of the sum of y by x, with the rule `tripled` and n = 2."""
    return (12.0 * (x @ w)) @ w.T


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradcheck_and_gradgradcheck_pass(backend):
    net, x = to_torch(compiled(backend)), point(2, 3)

    def fn(x, w):
        return torch.func.functional_call(net, {"w": w}, (x, 2))["y"]

    w = net.w.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(fn, (x, w))
    assert torch.autograd.gradgradcheck(fn, (x, w))


@pytest.mark.parametrize("backend", BACKENDS)
def test_rules_count_at_both_orders_and_one_more_is_an_error(backend):
    net, x = to_torch(compiled(backend, tripled)), point()
    made = net(x, n=torch.tensor(2))
    assert made["k"][0].dtype == torch.int64
    assert not made["k"][0].requires_grad
    assert made["k"][1] is None
    (dx,) = torch.autograd.grad(made["y"].sum(), x, create_graph=True)
    expected = by_hand(x, net.w)
    torch.testing.assert_close(dx, expected)
    d2, dw = torch.autograd.grad(dx.sum(), [x, net.w], create_graph=True)
    for got, right in zip((d2, dw), torch.autograd.grad(expected.sum(), [x, net.w]), strict=True):
        torch.testing.assert_close(got, right)
    with pytest.raises(gg.GradientError, match=r"to_torch\(gradients=3\)"):
        torch.autograd.grad(d2.sum(), net.w)


def test_no_gradient_at_all_can_be_asked_for():
    net, x = to_torch(compiled(rule=tripled), gradients=0), point()
    with pytest.raises(gg.GradientError, match="0 times at most"):
        net(x, 2)["y"].sum().backward()
    net = to_torch(compiled(rule=tripled), gradients=3)
    torch.autograd.functional.hessian(lambda x: net(x, 2)["y"].sum(), x)
    with pytest.raises(ValueError, match="the number of times"):
        to_torch(compiled(), gradients=-1)
    with pytest.raises(TypeError, match="an int"):
        to_torch(compiled(), gradients=True)


def test_only_what_is_asked_for_is_made():
    net, x = to_torch(compiled(rule=tripled)), point()
    order = net._order
    net(x.detach(), 2)
    assert order._made == {}
    net.requires_grad_(False)
    net(x, 2)["y"].sum().backward()
    ((_, of, by),) = order._made
    assert (of, by) == ((1,), (0,))  # k comes before y
    (following, _) = order._made["backward", of, by]
    assert len(following.order.outputs) == 1
    assert net.w.grad is None


def test_a_complex_gradient_is_the_conjugate_as_torch_has_it():
    with gg.Graph():
        z = gg.placeholder((3,), "complex128")
        y = gg.exp(z) * gg.conj(z)
        net = to_torch(gg.compile(z, [y, gg.sum(gg.real(y) ** 2 + gg.imag(y) ** 3)]))
    z = torch.tensor([1 + 2j, 0.5 - 1j, 2.0], dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z: net(z)[0], z)
    assert torch.autograd.gradgradcheck(lambda z: net(z)[1], z)
    for made, right in (
        (net(z)[0], torch.exp(z) * z.conj()),
        (net(z.conj())[0], torch.exp(z.conj()) * z),
    ):
        torch.testing.assert_close(made, right)
        got, expected = (torch.autograd.grad(y, z, torch.conj(z))[0] for y in (made, right))
        torch.testing.assert_close(got, expected)
    y = torch.exp(z) * z.conj()
    loss = (y.real**2 + y.imag**3).sum()
    for got, right in zip(*(torch.autograd.grad(y, z) for y in (net(z)[1], loss)), strict=True):
        torch.testing.assert_close(got, right)
    tangent = torch.func.jvp(lambda z: net(z)[0], (z.detach(),), (1j * z.detach(),))[1]
    torch.testing.assert_close(
        tangent,
        torch.func.jvp(lambda z: torch.exp(z) * z.conj(), (z.detach(),), (1j * z.detach(),))[1],
    )


# --- what torch does with functions -------------------------------------------------------------


def loss_of(net):
    return lambda x: net(x, 2)["y"].sum()


def test_torch_func_transforms_go_by_the_rules():
    net, x = to_torch(compiled(rule=tripled)), point().detach()
    net.requires_grad_(False)
    loss, rows = loss_of(net), point(5, 4, 3).detach()
    torch.testing.assert_close(torch.func.grad(loss)(x), by_hand(x, net.w))
    torch.testing.assert_close(
        torch.func.vmap(torch.func.grad(loss))(rows), by_hand(rows, net.w), rtol=1e-12, atol=0
    )
    batched = torch.func.grad(lambda rows: torch.func.vmap(loss, in_dims=1)(rows).sum())(rows)
    torch.testing.assert_close(batched, by_hand(rows, net.w))
    hessian = torch.func.jacrev(torch.func.grad(loss))(x)
    torch.testing.assert_close(hessian, torch.func.hessian(loss)(x))
    torch.testing.assert_close(torch.func.jvp(loss, (x,), (x,))[1], (by_hand(x, net.w) * x).sum())


def test_forward_mode_of_a_rule_that_is_not_linear_is_an_error_that_names_it():
    net, x = to_torch(compiled(rule=lambda site, dy: dy * dy)), point().detach()
    with pytest.raises(gg.GradientError, match="linear in the gradients"):
        torch.func.jvp(loss_of(net), (x,), (x,))


def test_what_would_record_values_is_an_error():
    net, x = to_torch(compiled(rule=tripled)), point().detach()
    a = gg.placeholder((3,))
    with pytest.raises(gg.ExecutionError, match=r"torch\.jit\.trace"):
        torch.jit.trace(loss_of(net), (x,))
    with pytest.raises(gg.DTypeError, match="symbolic_trace"):
        torch.fx.symbolic_trace(torch.nn.Sequential(to_torch(gg.compile(a, gg.sin(a)))))
    with pytest.raises(TypeError, match="state_dict"):
        pickle.dumps(net)


def test_make_fx_keeps_the_function_as_a_step_with_its_gradient():
    make_fx = pytest.importorskip("torch.fx.experimental.proxy_tensor").make_fx
    net, x = to_torch(compiled(rule=tripled)), point()
    for made in (make_fx(loss_of(net))(x.detach()), make_fx(torch.func.grad(loss_of(net)))):
        made = made if isinstance(made, torch.nn.Module) else made(x.detach())
        assert "graphgrad.order" in made.code
    program = make_fx(loss_of(net))(x.detach())
    other = (2.0 * x).detach().requires_grad_()
    torch.testing.assert_close(program(other), loss_of(net)(other))
    torch.testing.assert_close(
        torch.autograd.grad(program(other), other)[0], by_hand(other, net.w).detach()
    )
    for transform in (
        lambda: torch.func.grad(program)(x.detach()),
        lambda: torch.func.jvp(program, (x.detach(),), (x.detach(),)),
    ):
        with pytest.raises(gg.ExecutionError, match=r"torch\.func does not transform"):
            transform()


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_torch_compile_keeps_the_gradient_of_the_rules():
    net, x = to_torch(compiled(rule=tripled)), point()

    class Around(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.net = torch.nn.Linear(3, 3).double(), net

        def forward(self, x):
            return (self.net(self.before(x), 2)["y"] * 2.0).sum()

    around = Around()
    wrt = [x, *around.parameters()]
    expected = torch.autograd.grad(around(x), wrt)
    for backend in ("eager", "aot_eager"):
        made = torch.compile(around, backend=backend, fullgraph=True)
        for got, right in zip(torch.autograd.grad(made(x), wrt), expected, strict=True):
            torch.testing.assert_close(got, right)
    exported = torch.export.export(
        around, (x.detach(),), dynamic_shapes={"x": {0: torch.export.Dim("N")}}
    ).module()
    more = point(7, 3)
    torch.testing.assert_close(exported(more), around(more))
    torch.testing.assert_close(
        torch.autograd.grad(exported(more), more), torch.autograd.grad(around(more), more)
    )
    torch.compiler.reset()


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_transforms_within_what_is_compiled_are_right_or_an_error(backend):
    """torch drops the tangent of a step that it has no rule for: it is never silent here."""
    net, x = to_torch(compiled(rule=tripled)), point().detach()
    loss, right = loss_of(net), by_hand(x, net.w)
    transforms = {
        lambda x: torch.func.jvp(loss, (x,), (x,))[1]: (right * x).sum(),
        torch.func.grad(loss): right,
        torch.func.jacfwd(loss): right,
    }
    for transform, expected in transforms.items():
        try:
            made = torch.compile(transform, backend=backend)(x)
        except Exception as error:  # of torch, with what was said within
            assert "graphgrad" in str(error)  # noqa: PT017
        else:
            torch.testing.assert_close(made, expected)
    torch.compiler.reset()


def test_checkpointing_of_torch():
    net, x = to_torch(compiled(rule=tripled)), point()
    from torch.utils.checkpoint import checkpoint

    value = checkpoint(loss_of(net), x, use_reentrant=False)
    torch.testing.assert_close(torch.autograd.grad(value, x)[0], by_hand(x, net.w).detach())


# --- parameters, numbers without a seed, memory -------------------------------------------------


def test_variables_are_parameters_and_buffers_and_torch_trains_them():
    f = compiled()
    net, x = to_torch(f), point().detach()
    assert [n for n, _ in net.named_parameters()] == ["w"]
    assert [n for n, _ in net.named_buffers()] == ["training_"]
    assert net.training is True
    step = torch.optim.SGD(net.parameters(), 0.05)
    losses = []
    for _ in range(5):
        step.zero_grad()
        loss = (net(x, 1)["y"] ** 2).sum()
        loss.backward()
        step.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]
    graph = f.inputs[0].graph
    np.testing.assert_array_equal(graph.state[graph.variables["w"]], WEIGHTS)
    twin = copy.deepcopy(net)
    twin.load_state_dict({k: torch.zeros_like(v) for k, v in net.state_dict().items()})
    assert not twin(x, 1)["y"].any()
    assert net(x, 1)["y"].any()
    half = copy.deepcopy(net).float()
    torch.testing.assert_close(half(x.float(), 1)["y"], net(x, 1)["y"], rtol=1e-4, atol=1e-5)


def test_a_function_that_writes_is_refused_by_name():
    with gg.Graph():
        v = gg.variable(1.0, name="count")
        f = gg.compile(gg.placeholder((), name="x"), v + 1.0, updates={v: v + 1.0})
    with pytest.raises(gg.StateError, match="writes count"):
        to_torch(f)
    with pytest.raises(TypeError, match="build"):
        to_torch(gg.function(lambda x: x))
    with pytest.raises(TypeError, match=r"gg\.compile returns"):
        to_torch(abs)


def test_numbers_without_a_seed_follow_torch_and_are_the_same_backward():
    with gg.Graph():
        x = gg.placeholder((5,))
        net = to_torch(gg.compile(x, x * gg.random.normal((5,))))
    x = torch.ones(5, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(3)
    one, two = net(x), net(x)
    torch.manual_seed(3)
    assert torch.equal(one, net(x))
    assert not torch.equal(one, two)
    for y in (one, two):
        assert torch.equal(torch.autograd.grad(y.sum(), x)[0], y)
    with pytest.raises(gg.StateError, match="seed=key"):
        torch.func.vmap(net, randomness="same")(torch.ones(2, 5, dtype=torch.float64))


def test_tensors_cross_in_one_memory_and_results_are_the_callers_own():
    seen = []
    with gg.Graph():
        x, c = gg.placeholder((3,)), gg.constant([1.0, 2.0, 3.0])
        y = gg.py_function(lambda a: (seen.append(a.ctypes.data), a * 1.0)[1], [x], [x.type])
        net = to_torch(gg.compile(x, [y, x, c]))
    t = torch.ones(6, dtype=torch.float64)[::2]
    found = net(t)
    assert seen == [t.data_ptr()]
    for result in found:
        result += 5.0
    assert t.tolist() == [1.0] * 3
    again = net(t)
    assert again[2].tolist() == [1.0, 2.0, 3.0]
    kept = [r.clone() for r in again]
    for _ in range(3):
        net(t * 2.0)
    gc.collect()
    assert all(torch.equal(a, b) for a, b in zip(again, kept, strict=True))


def test_what_does_not_fit_is_said():
    net, x = to_torch(compiled()), point()
    wrong = [
        (lambda: net(x), TypeError, "missing 'n'"),
        (lambda: net(x, m=1), TypeError, "no input is called 'm'"),
        (lambda: net(x[:, :2], 1), gg.ShapeError, "'x'"),
        (lambda: net(x.to(torch.complex128), 1), gg.DTypeError, "'x'"),
        (lambda: net(x, torch.tensor(1.5)), gg.DTypeError, "'n'"),
        (lambda: net(x.detach().to("meta"), 1), gg.DeviceError, "meta"),
        (lambda: net(x.detach().to_sparse(), 1), gg.DTypeError, "to_dense"),
    ]
    for call, error, said in wrong:
        with pytest.raises(error, match=said):
            call()
    single = x.detach().float().requires_grad_()
    net(single, 1)["y"].sum().backward()
    assert single.grad.dtype == torch.float32
    assert net(x.detach().numpy(), np.int8(1))["y"].shape == (4, 2)
    assert net(torch.zeros(0, 3), 1)["y"].shape == (0, 2)


def test_a_module_is_not_cast_to_a_dtype_wider_than_its_graph_computes_in():
    with gg.Graph():
        x, w = gg.placeholder(("N", 2), "float32"), gg.variable(np.ones(2, "float32"), name="w")
        net = to_torch(gg.compile(x, x @ w))
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), net)
    said = r"computes with 'w' in torch\.float32, but the module is being cast to torch\.float64"
    with pytest.raises(gg.DTypeError, match=said):
        model.double()
    assert net.w.dtype == torch.float32
    for narrow in (model.float(), model.half(), model.bfloat16()):
        assert narrow[1](torch.ones(1, 2)).dtype == torch.float32
        assert net.w.dtype == narrow[0].weight.dtype
    with pytest.raises(gg.DTypeError, match=r"torch\.float64"):
        net.double()


def test_an_input_in_the_middle_is_held_while_others_move():
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        h = gg.exp(x)
        net = to_torch(gg.compile([x, h], x * h))
    x, h = (point(2, 3)[i].detach().requires_grad_() for i in range(2))
    dx, dh = torch.autograd.grad(net(x, h).sum(), [x, h])
    assert torch.equal(dx, h.detach())
    assert torch.equal(dh, x.detach())


def test_a_rule_in_force_when_it_was_made_counts_later():
    with gg.Graph():
        x = gg.placeholder((3,))
        with gg.temporary_gradient("tests/once", lambda site, dy: dy * 7.0):
            with gg.override_gradient("tests/once"):
                y = gg.sin(x)
            net = to_torch(gg.compile(x, y))
    t = torch.ones(3, dtype=torch.float64, requires_grad=True)
    net(t).sum().backward()
    assert t.grad.tolist() == [7.0] * 3


def test_a_module_of_torch_in_a_graph_in_torch():
    inner = torch.nn.Linear(3, 2).double()
    with gg.Graph():
        x = gg.placeholder((4, 3))
        net = to_torch(gg.compile(x, gg.tanh(gg.interop.from_torch(inner, x))))
    t = point()
    direct = torch.tanh(inner(t))
    wrt = [t, *net.parameters()]
    for got, right in zip(
        torch.autograd.grad(net(t).sum(), wrt),
        torch.autograd.grad(direct.sum(), [t, *inner.parameters()]),
        strict=True,
    ):
        torch.testing.assert_close(got, right)
    assert torch.autograd.gradgradcheck(net, t)


def open_modules():
    with gg.Graph():
        x, v, rows = opens.placeholders()
        outputs = [*opens.moved(x, v), *opens.looped(x, rows)]
        del outputs[2]  # torch asks whether its length is 1
        loss = opens.total(outputs)
        made = loss, x[: x.shape[0] - 1], *outputs
        slopes = gg.compile([x, v, rows], gg.gradients(loss, [x, v, rows]), backend="numpy")
        return to_torch(gg.compile([x, v, rows], made, backend="numpy")), slopes


def test_open_lengths_are_those_of_the_tensors():
    module, slopes = open_modules()
    for n in opens.LENGTHS:
        given = [torch.tensor(a, requires_grad=True) for a in opens.arrays(n)]
        module(*given)[0].backward()
        for t, dx in zip(given, slopes(*opens.arrays(n)), strict=True):
            np.testing.assert_allclose(t.grad, dx, rtol=1e-10)
    with pytest.raises(gg.ShapeError, match=r"length '2\*N \+ 1' is 9 .*, and 11 where 'N' is 5"):
        module(given[0], given[1][2:], given[2])


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_open_lengths_stay_open_in_what_torch_exports_and_compiles():
    module, _ = open_modules()
    rows = torch.export.Dim("rows", min=3)
    tensors = [tuple(torch.tensor(a) for a in opens.arrays(n)) for n in (4, 3, 7)]

    class Around(torch.nn.Module):
        def forward(self, *args):
            return [2.0 * y for y in module(*args)]

    around = Around()
    around.inner = module
    dynamic = (({0: rows}, {0: 2 * rows + 1}, None),)
    exported = torch.export.export(around, tensors[0], dynamic_shapes=dynamic).module()
    compiled = torch.compile(around, dynamic=True, backend="eager")
    for given in tensors:
        for made in (exported, compiled):
            for got, right in zip(made(*given), around(*given), strict=True):
                torch.testing.assert_close(got, right)
    torch.compiler.reset()
