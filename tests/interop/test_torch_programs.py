"""Reports of what opening makes of a module of PyTorch, and modules with rules put on them."""

import copy
import pickle

import pytest

import graphgrad as gg

from .torch_rules import Guided

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"
)
nn = torch.nn


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, dy):
        return dy


class Counting(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, dy):
        return dy * torch.nonzero(dy).sum()


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4)
        self.dropout, self.last = nn.Dropout(0.5), nn.Linear(4, 3)

    def forward(self, x, rule=Rounded):
        y = torch.relu(self.norm(self.conv(x))).mean((2, 3))
        return rule.apply(self.last(self.dropout(y)))


IMAGE = torch.empty(2, 2, 6, 6, device="meta")


# --- reports ------------------------------------------------------------------------------------


def test_a_report_says_what_became_of_what():
    report = gg.interop.open_report(Network(), IMAGE)
    rows = {row.theirs: row for row in report.rows}
    line = Network.forward.__code__.co_firstlineno
    assert rows["relu"] == gg.interop.OpenedRow(
        "relu", {"Relu": 1}, 1, f"test_torch_programs.py:{line + 1}"
    )
    assert rows["convolution"].ours["Conv2D"] == 1
    (rule,), (draw,) = report.rules, report.draws
    where = f"test_torch_programs.py:{line + 2}"
    assert (rule.theirs, rule.count, rule.where) == ("Rounded", 1, where)
    assert (draw.theirs, draw.count, draw.where) == ("native_dropout", 1, where)
    assert report.missing == ()
    assert report.weights["conv.weight"].shape == (4, 2, 3, 3)
    assert report.writes == ("norm.running_mean", "norm.running_var", "norm.num_batches_tracked")
    assert "writes: norm.running_mean, " in str(report)
    still = gg.interop.open_report(Network().eval(), IMAGE, parameters="constants")
    assert (still.draws, still.writes, still.weights) == ((), (), {})


def test_a_report_says_what_is_missing_and_builds_nothing():
    def fn(a, b):
        y = torch.linalg.eig(a)[0].real + torch.relu(b)
        return y, torch.nonzero(a), b[b > 0], torch.sin(y)

    with gg.Graph() as graph:
        a, n = gg.placeholder(("N", 3, 3)), gg.placeholder(("N", 2, 6, 6), "float32")
        report = gg.interop.open_report(fn, a, torch.ones(3))
        lost = gg.interop.open_report(Network().eval(), n, Counting)
        assert len(graph) == 2
    missing = {row.theirs: row for row in report.missing}
    assert {name: row.count for name, row in missing.items()} == {
        "index.Tensor": 1,
        "linalg_eig": 1,
        "nonzero": 1,
    }
    assert missing["index.Tensor"].why.startswith("with a computed mask")
    assert "relu" in {row.theirs for row in report.rows}
    (row,) = lost.missing
    assert (row.theirs, lost.rules) == ("Counting", ())
    assert "its backward cannot be opened" in row.why
    assert "nonzero: 1 time" in row.why


def test_a_report_refuses_what_is_no_program():
    with pytest.raises(TypeError, match=r"open_report\(\) takes a module or function of torch"):
        gg.interop.open_report(3, torch.ones(2))
    with gg.Graph() as graph:
        with pytest.raises(gg.DeviceError, match="meta"):
            gg.interop.open_torch(torch.relu, IMAGE)
        assert len(graph) == 0


# --- the way back -------------------------------------------------------------------------------


def nothing(graph):
    """Marks nothing."""


def guided(graph):
    graph.mark(gg.select.op("Relu"), gg.rules.guided())


def point(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


class Net(nn.Module):
    def __init__(self, relu=torch.relu):
        super().__init__()
        self.conv, self.norm, self.last = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 3)
        self.relu, self.kind = relu, "a net"

    def forward(self, x, *, scale=1.0, more=None):
        h = self.relu(self.norm(self.conv(x))).mean((2, 3)) * scale
        h = h if more is None else h + more["rows"][0]
        return {"y": self.last(h), "rest": [h, None], "n": 2}


def nets():
    """A module with rules put on it, the module, and one that was edited."""
    torch.manual_seed(0)
    net, edited = Net().double(), Net(Guided.apply).double()
    edited.load_state_dict(net.state_dict())
    return gg.interop.retrofit(net, guided), net, edited


def close(a, b):
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


def test_S04_S44_a_module_has_its_values_and_the_gradients_of_the_rules():
    marked, net, edited = nets()
    x, row = point(3, 2, 6, 6), point(3, 4)
    made = marked(x, scale=-2.0, more={"rows": [row]})
    wanted = edited(x, scale=-2.0, more={"rows": [row]})
    assert (made["n"], made["rest"][1]) == (2, None)
    close(made["y"], wanted["y"])
    own = list(net.parameters())
    found = torch.autograd.grad(made["y"].sum(), [x, row, *own])
    there = torch.autograd.grad(wanted["y"].sum(), [x, row, *edited.parameters()])
    for a, b in zip(found, there, strict=True):
        close(a, b)
    for a, b in zip(net.buffers(), edited.buffers(), strict=True):  # which it has written
        close(a, b)
    assert net.norm.num_batches_tracked == 1


def test_it_is_the_module_with_another_forward():
    marked, net, edited = nets()
    assert isinstance(marked, Net)
    assert marked.kind == "a net"
    assert all(a is b for a, b in zip(marked.parameters(), net.parameters(), strict=True))
    assert list(marked.state_dict()) == list(net.state_dict())
    marked.eval()
    assert not net.training
    optimiser, x = torch.optim.SGD(marked.parameters(), lr=0.1), point(2, 2, 6, 6)
    marked(x)["y"].square().sum().backward()
    optimiser.step()
    close(marked(x)["y"], net(x)["y"])
    marked.load_state_dict(edited.state_dict())
    close(net(x)["y"], edited.eval()(x)["y"])
    marked.float()
    assert net(x.float())["y"].dtype == marked(x.float())["y"].dtype == torch.float32
    copied = copy.deepcopy(marked)
    assert copied.last.weight is not net.last.weight
    torch.testing.assert_close(copied(x.float())["y"], net(x.float())["y"])
    with pytest.raises(TypeError, match="save its state_dict"):
        pickle.dumps(marked)


def test_it_is_opened_once_for_each_signature():
    opened = []
    marked = gg.interop.retrofit(Net().double(), opened.append, point(3, 2, 6, 6))
    assert len(opened) == 1
    for _ in range(2):
        marked(point(3, 2, 6, 6))
        marked(point(1, 2, 6, 6))
        marked(point(3, 2, 6, 6), scale=2.0)
        with torch.no_grad():
            assert not marked(point(3, 2, 6, 6))["y"].requires_grad
    assert len(opened) == 3
    marked.norm.eval()
    marked(point(1, 2, 6, 6))
    assert len(opened) == 4


class Asking(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        return 2 * dy * w, 3 * dy * x if ctx.needs_input_grad[1] else None


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3, dtype=torch.float64), requires_grad=False)

    def forward(self, x):
        return Asking.apply(x, self.w)


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(3, 3).double(), nn.Linear(3, 3).double()
        self.last.weight = self.first.weight

    def forward(self, x):
        return self.last(torch.sin(self.first(x)))


def trained(module, x):
    """The value, and the gradients of x and all parameters."""
    y, own = module(x), list(module.parameters())
    return y, *torch.autograd.grad(y.sum(), [x, *own])


def test_S44_parts_hooks_and_shared_weights_that_change_are_seen():
    net, x = Twice(), point(2, 3)
    marked = gg.interop.retrofit(net, nothing, x)
    for change in (
        lambda: setattr(net, "first", nn.Sequential(nn.Linear(3, 3).double(), nn.ReLU())),
        lambda: net.first[0].register_forward_hook(lambda *call: 3 * call[2]),
        lambda: net.first[1].register_forward_pre_hook(lambda _, args: (args[0] + 1,)),
        lambda: setattr(net.last, "weight", nn.Parameter(torch.eye(3, dtype=torch.float64))),
        lambda: setattr(net.first[0], "weight", net.last.weight),
    ):
        change()
        for a, b in zip(trained(marked, x), trained(net, x), strict=True):
            close(a, b)
    net.first[0].register_full_backward_hook(lambda *call: None)
    with pytest.raises(gg.GradientError, match=r"backward_hooks on first\.0"):
        marked(x)


def test_S44_a_weight_that_comes_to_require_a_gradient_has_it():
    net, x = Scaled(), point(2, 3)
    marked = gg.interop.retrofit(net, nothing)
    marked(x).sum().backward()
    assert net.w.grad is None
    net.w.requires_grad_(True)
    marked(x).sum().backward()
    close(net.w.grad, 3 * x.detach().sum(0))


def test_it_is_opened_within_a_checkpoint_and_for_tensors_that_are_no_parameters():
    net, x = Net().double().eval(), point(2, 2, 6, 6)
    checkpoint = torch.utils.checkpoint.checkpoint
    marked = gg.interop.retrofit(net, nothing)
    y = checkpoint(lambda x: marked(x)["y"], x, use_reentrant=False)
    close(*torch.autograd.grad([y.sum(), net(x)["y"].sum()], x, allow_unused=True) * 2)
    marked = gg.interop.retrofit(net, nothing)
    own = {name: point(*p.shape) for name, p in net.named_parameters()}
    found = [torch.func.functional_call(m, own, (x,))["y"] for m in (marked, net)]
    close(*found)
    close(*[torch.autograd.grad(y.sum(), own["last.weight"])[0] for y in found])


class Turned(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([1 + 2j, 0.5j]))

    def forward(self, x):
        return Asking.apply(self.w, x).abs()


def test_complex_weights_have_their_gradients_in_transforms():
    net, x = Turned().to(torch.complex128), torch.complex(point(2), point(2)).detach()
    marked = gg.interop.retrofit(net, nothing)
    own = {"w": net.w.detach()}

    def loss(own, module):
        return torch.func.functional_call(module, own, (x,)).sum()

    found = torch.func.grad(loss)(own, marked)["w"]
    close(found.resolve_conj(), torch.autograd.grad(net(x).sum(), net.w)[0].resolve_conj())


def test_S23_S44_functions_and_second_orders():
    through = gg.interop.retrofit(
        lambda x: torch.round(x) ** 3, lambda graph: graph.mark("Round", gg.rules.ste())
    )
    x = point(4)
    (first,) = torch.autograd.grad(through(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad((first**2).sum(), x)
    y = torch.round(x.detach())
    close(first, 3 * y**2)
    close(second, 2 * 3 * y**2 * 6 * y)
    once = gg.interop.retrofit(torch.sin, nothing, gradients=1)
    (first,) = torch.autograd.grad(once(x).sum(), x, create_graph=True)
    with pytest.raises(gg.GradientError):
        torch.autograd.grad(first.sum(), x)
    plain = gg.interop.retrofit(Net().double().eval(), nothing)
    assert torch.autograd.gradgradcheck(lambda x: plain(x)["y"].tanh(), point(1, 2, 4, 4))


def test_torch_func_goes_through_a_module_and_a_method():
    marked, net, edited = nets()
    net.eval(), edited.eval()
    x, own = point(3, 2, 6, 6).detach(), {n: p.detach() for n, p in net.named_parameters()}

    def loss(own, x, module):
        return torch.func.functional_call(module, own, (x[None],))["y"].sin().sum()

    found = torch.func.vmap(torch.func.grad(loss, (0, 1)), (None, 0, None))(own, x, marked)
    for i, row in enumerate(x.split(1)):
        row = row.clone().requires_grad_()
        edited(row)["y"].sin().sum().backward()
        close(found[1][i : i + 1], row.grad)
        for name, p in edited.named_parameters():
            close(found[0][name][i], p.grad)
            p.grad = None
    plain = gg.interop.retrofit(net.forward, nothing)
    moved = [torch.func.jvp(lambda x, f=f: f(x)["y"], (x,), (x,))[1] for f in (plain, net)]
    close(*moved)


def test_draws_follow_the_generator_of_torch():
    net = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.5)).double()
    marked, x = gg.interop.retrofit(net, nothing), point(8, 4)
    torch.manual_seed(1)
    first = marked(x)
    torch.manual_seed(1)
    close(first, marked(x))
    assert not torch.equal(first, marked(x))
    kept = first != 0
    close(first[kept], 2 * net[0](x)[kept])
    marked.eval()
    close(marked(x), net(x))


def test_what_cannot_be_is_said():
    x = torch.ones(2, 2)
    marked = gg.interop.retrofit(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), guided)
    for call, error, said in (
        (lambda: gg.interop.retrofit(nn.Linear(2, 2), "Relu"), TypeError, "module of PyTorch, and"),
        (lambda: gg.interop.retrofit(nn.Linear(2, 2), guided)(x), gg.RegionError, "selects no"),
        (lambda: gg.interop.retrofit(nn.Linear(2, 2), added)(x), gg.StateError, "adds or writes"),
        (
            lambda: gg.interop.retrofit(lambda x: x[x > 0], nothing, x),
            gg.GraphError,
            "a computed mask",
        ),
        (lambda: marked[:1](x), gg.StateError, "a part of a retrofitted Sequential"),
        (lambda: marked(x.numpy()), TypeError, "from_numpy"),
        (
            lambda: marked(x.to("meta")),
            gg.DeviceError,
            "the argument 'input' is on the device meta",
        ),
        (lambda: gg.interop.retrofit(marked, nothing), TypeError, "retrofitted already"),
        (
            lambda: gg.interop.retrofit(nn.Sequential(marked), nothing)(x),
            gg.ExecutionError,
            "call it once before",
        ),
        (lambda: torch.jit.trace(marked, x), gg.ExecutionError, "lose its gradient"),
        (
            lambda: gg.interop.retrofit(torch.jit.script(nn.ReLU()), nothing),
            TypeError,
            "RecursiveScriptModule",
        ),
    ):
        with pytest.raises(error, match=said):
            call()


def added(graph):
    with graph.as_default():
        w = gg.variable(1.0, "float32", name="w")
    graph.mark("MatMul", lambda site, *dys: tuple(dy * w for dy in site.default(*dys)))
