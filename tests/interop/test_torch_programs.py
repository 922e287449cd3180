"""Reports of what opening makes of a module of PyTorch, and modules with rules put on them."""

import pytest

import graphgrad as gg

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
    assert missing["index.Tensor"].why.startswith("with a mask that is computed")
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
