"""Every override of the survival matrix through PyTorch: honoured, or a loud error; never lost."""

import numpy as np
import pytest

import graphgrad as gg

from ..each import each
from ..survival.matrix import NOT_LINEAR, differs
from ..survival.overrides import OVERRIDES
from ..survival.transforms import DIRECTION, EXAMPLES, WEIGHTS, X, known, second, world

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning:torch", "ignore::FutureWarning:torch"
)

ROWS = [row for row in OVERRIDES if row.name not in ("Random", "Draws")]
NAMED = [(row.name, row) for row in ROWS]
COMPILED = ("Linear", "Many", "Variables", "SecondRule", "OpType")


def module_of(row):
    """A row as a module, its input, and what else gradients are asked for."""
    with gg.Graph():
        w = world(row)
        net = gg.interop.to_torch(gg.compile(w.x, w.loss, backend="numpy"))
    own = dict(net.named_parameters())
    return net, torch.tensor(X, requires_grad=True), [own[t.node.name] for t in w.made.extra]


def both_orders(net, x, extra):
    """The loss and its derivatives, as in the matrix."""
    loss = net(x)
    dxs = torch.autograd.grad(loss, [x, *extra], create_graph=True, materialize_grads=True)
    y = torch.sum(torch.tensor(WEIGHTS) * dxs[0]) + 0.9 * sum(dx.sum() for dx in dxs[1:])
    again = [torch.zeros_like(t) for t in (x, *extra)]
    if y.requires_grad:
        again = torch.autograd.grad(y, [x, *extra], materialize_grads=True)
    return [t.detach().numpy() for t in (loss, *dxs, *again)]


def test_S41_a_rule_that_draws_without_a_seed_is_an_error_that_names_the_draw_in_torch():
    (row,) = [row for row in OVERRIDES if row.name == "Draws"]
    with pytest.raises(gg.StateError, match=r"(?s)draws random.*Draws \(overrides\.py:\d+"):
        both_orders(*module_of(row))


@each(NAMED)
def test_an_override_survives_torch(row):
    found, expected = both_orders(*module_of(row)), known(row, second)
    assert [differs(a, b) for a, b in zip(found, expected, strict=True)] == [""] * len(expected)


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore:PyFunction has no batching rule:graphgrad.PerformanceWarning")
@each(NAMED)
def test_an_override_survives_vmap_of_torch(row):
    net, _, _ = module_of(row)
    found = torch.func.vmap(torch.func.grad(net))(torch.tensor(EXAMPLES)).detach().numpy()
    for got, x in zip(found, EXAMPLES, strict=True):
        assert differs(got, known(row, second, tuple(x))[1]) == ""


@pytest.mark.ci
@each(NAMED)
def test_forward_mode_of_torch_is_that_of_the_rules_or_an_error(row):
    net, x, _ = module_of(row)
    direction = torch.tensor(DIRECTION)
    if not row.linear:
        with pytest.raises(gg.GradientError, match=NOT_LINEAR):
            torch.func.jvp(net, (x.detach(),), (direction,))
        return
    with gg.Graph():
        w = world(row)
        expected = gg.evaluate(gg.jvp(w.loss, w.x, DIRECTION), {w.x: X})
    found = torch.func.jvp(net, (x.detach(),), (direction,))[1].detach().numpy()
    assert differs(found, expected) == ""


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("row", [r for r in ROWS if r.name in COMPILED], ids=lambda row: row.name)
def test_an_override_survives_what_torch_makes_of_a_program(row):
    net, x, extra = module_of(row)
    expected = known(row, second)[: 2 + len(extra)]
    exported = torch.export.export(net, (x.detach(),)).module()
    own = dict(exported.named_parameters())
    names = [n for t in extra for n, p in net.named_parameters() if p is t]
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
    for made, wrt in ((compiled, extra), (exported, [own[n] for n in names])):
        loss = made(x)
        dxs = torch.autograd.grad(loss, [x, *wrt], materialize_grads=True)
        got = [t.detach().numpy() for t in (loss, *dxs)]
        assert [differs(a, b) for a, b in zip(got, expected, strict=True)] == [""] * len(expected)
    torch.compiler.reset()


def test_a_lost_override_is_seen():
    """The plain derivative is another one."""
    row = next(r for r in ROWS if r.name == "Linear")
    with gg.Graph():
        w = world(row)
        plain = gg.gradients(w.loss, w.x, overrides="none")
        assert not np.allclose(gg.evaluate(plain, {w.x: X}), known(row, second)[1])
