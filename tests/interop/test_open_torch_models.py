"""Models that others wrote, opened and retrofitted: values and all gradients are those of torch."""

import copy
from importlib import import_module
from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
import pytest

import graphgrad as gg

from .torch_rules import Guided

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.ci,
    pytest.mark.filterwarnings("ignore"),
]
nn, F = torch.nn, torch.nn.functional
leaves = torch.utils._pytree.tree_leaves


def optional(name):
    with catch_warnings():
        simplefilter("ignore")
        try:
            return import_module(name)
        except (ImportError, RuntimeError):  # as torchvision for another torch raises
            return None


vision, timm, transformers = map(optional, ("torchvision.models", "timm", "transformers"))


class Model(NamedTuple):
    """A model of torch.

    make    () -> (module, arrays)
    needs   the package that it is written in
    second  whether it has a second derivative
    close   to which precision
    """

    make: Any
    needs: Any = torch
    second: bool = True
    close: float = 1e-10


MODELS: dict[str, Model] = {}


def model(needs=torch, **said):
    def decorate(make):
        MODELS[make.__name__] = Model(make, needs, **said)
        return make

    return decorate


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape)


IMAGE, WORDS = numbers(1, 3, 64, 64), np.random.default_rng(0).integers(1, 50, (2, 6))

# --- torchvision and timm -----------------------------------------------------------------------

for name in ("resnet18", "mobilenet_v3_small", "squeezenet1_1", "shufflenet_v2_x0_5", "mnasnet0_5"):
    MODELS[name] = Model(
        lambda name=name: (getattr(vision, name)(weights=None), [IMAGE]), vision, name[0] == "r"
    )
for name in ("efficientnet_b0", "swin_t"):
    MODELS[name] = Model(
        lambda name=name: (getattr(vision, name)(weights=None), [IMAGE]), vision, False
    )
for name in ("deit_tiny_patch16_224", "mixer_s32_224"):
    MODELS[name] = Model(
        lambda name=name: (timm.create_model(name, num_classes=5, img_size=64), [IMAGE]),
        timm,
        False,
    )
for name in ("resnet10t", "ghostnet_100"):
    MODELS[name] = Model(
        lambda name=name: (timm.create_model(name, num_classes=5), [IMAGE]), timm, False
    )


@model(vision, second=False)  # torch has none of its attention
def vision_transformer():
    return vision.VisionTransformer(64, 32, 2, 2, 16, 32), [IMAGE]


# --- transformers -------------------------------------------------------------------------------

SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}


@model(transformers, second=False)
def bert():
    return transformers.BertModel(transformers.BertConfig(**SIZES, vocab_size=50)), [WORDS]


@model(transformers, second=False)
def distilbert():
    config = transformers.DistilBertConfig(
        vocab_size=50, dim=16, n_layers=2, n_heads=2, hidden_dim=32
    )
    return transformers.DistilBertModel(config), [WORDS]


@model(transformers, second=False)
def gpt2():
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32, "use_cache": False}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=50, **sizes)), [WORDS]


@model(transformers, second=False, close=1e-6)  # its norms and rotations are computed in float32
def llama():
    config = transformers.LlamaConfig(
        **SIZES, vocab_size=50, num_key_value_heads=1, use_cache=False
    )
    return transformers.LlamaForCausalLM(config), [WORDS]


@model(transformers, second=False)
def vit():
    return transformers.ViTModel(transformers.ViTConfig(image_size=64, **SIZES)), [IMAGE]


@model(transformers, close=1e-6)  # its norms are computed in float32
def t5_encoder():
    config = transformers.T5Config(
        vocab_size=50, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2
    )
    return transformers.T5EncoderModel(config), [WORDS]


# --- written by hand ----------------------------------------------------------------------------


@model(second=False)
def lstm():
    return nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True), [numbers(2, 5, 3)]


@model()
def gru_of_cells():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.last = nn.GRUCell(3, 4), nn.Linear(4, 2)

        def forward(self, x):
            h = x.new_zeros(len(x), 4)
            for row in x.unbind(1):
                h = self.cell(row, h)
            return self.last(h)

    return Net(), [numbers(2, 4, 3)]


@model()
def graph_attention():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.lift, self.score = nn.Linear(3, 4), nn.Linear(8, 1)

        def forward(self, x, edges):
            h, (source, target) = self.lift(x), edges
            score = self.score(torch.cat([h[source], h[target]], -1)).tanh().exp()
            total = torch.zeros(len(x), 1, dtype=x.dtype).index_add(0, target, score)
            rows = h[source] * score / total[target]
            return torch.zeros_like(h).scatter_add(0, target[:, None].expand_as(rows), rows)

    return Net(), [numbers(4, 3), np.array([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])]


@model()
def u_net():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.down, self.deep = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
            self.up, self.last = nn.ConvTranspose2d(4, 4, 2, stride=2), nn.Conv2d(8, 1, 1)
            self.norm = nn.GroupNorm(2, 4)

        def forward(self, x):
            first = F.silu(self.norm(self.down(x)))
            deep = F.silu(self.deep(F.avg_pool2d(first, 2)))
            return self.last(torch.cat([first, self.up(deep)], 1))

    return Net(), [numbers(1, 2, 8, 8)]


@model()
def normalising_flow():
    class Coupling(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 4))

        def forward(self, x):
            a, b = x.chunk(2, -1)
            scale, shift = self.net(a).chunk(2, -1)
            return torch.cat([b * scale.tanh().exp() + shift, a], -1), scale.tanh().sum(-1)

    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = nn.ModuleList([Coupling() for _ in range(3)])

        def forward(self, x):
            total = 0.0
            for step in self.steps:
                x, log_det = step(x)
                total = total + log_det
            normal = torch.distributions.Normal(torch.zeros_like(x), 1.0, validate_args=False)
            return normal.log_prob(x).sum(-1) + total

    return Flow(), [numbers(3, 4)]


class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return (v > 0).to(v.dtype)

    @staticmethod
    def backward(ctx, dy):
        (v,) = ctx.saved_tensors
        return dy / (1 + 3 * v.abs()) ** 2


@model()
def spiking_net():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(3, 6), nn.Linear(6, 2)

        def forward(self, x):
            v, total = torch.zeros(len(x), 6, dtype=x.dtype), 0.0
            for row in x.unbind(1):
                v = 0.9 * v + self.first(row)
                spike = Spike.apply(v - 0.3)
                v, total = v - spike, total + self.last(spike)
            return total

    return Net(), [numbers(2, 5, 3)]


class Quantised(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return torch.round(x / scale).clamp(-4, 3) * scale

    @staticmethod
    def backward(ctx, dy):
        x, scale = ctx.saved_tensors
        inside = (x / scale >= -4) & (x / scale <= 3)
        wrong = torch.where(inside, torch.round(x / scale) - x / scale, (x / scale).clamp(-4, 3))
        return dy * inside, (dy * wrong).sum()


@model()
def learned_step_quantiser():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.last = nn.Parameter(torch.tensor(0.3)), nn.Linear(3, 2)

        def forward(self, x):
            return self.last(Quantised.apply(torch.tanh(x), self.scale))

    return Net(), [numbers(4, 3)]


# --- what holds of all --------------------------------------------------------------------------


def nothing(graph):
    """Marks nothing."""


def gradients(module, arrays, again):
    tensors = [torch.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    ys = [y for y in leaves(module(*tensors)) if isinstance(y, torch.Tensor)]
    ys = [y for y in ys if y.requires_grad]
    by = [*[t for t in tensors if t.requires_grad], *module.parameters()]
    loss = sum(torch.sin(y).sum() for y in ys)
    dxs = torch.autograd.grad(loss, by, create_graph=again, allow_unused=True)
    found = [*ys, *dxs]
    if again:
        squares = sum((dx**2).sum() for dx in dxs if dx is not None)
        found += torch.autograd.grad(squares, by, allow_unused=True)
    return [None if t is None else t.detach().numpy() for t in found]


@pytest.mark.parametrize("name", MODELS)
def test_S04_S44_a_model_that_was_opened_has_its_values_and_gradients(name):
    made = MODELS[name]
    if made.needs is None:
        pytest.skip("a package is missing")
    torch.manual_seed(0)
    module, arrays = made.make()
    module = module.double().eval()
    wanted = gradients(module, arrays, made.second)
    opened = gg.interop.retrofit(module, nothing)
    for a, b in zip(gradients(opened, arrays, made.second), wanted, strict=True):
        a, b = (0.0 if x is None else x for x in (a, b))
        scale = max(1.0, float(np.abs(b).max(initial=0)))
        np.testing.assert_allclose(a, b, rtol=0, atol=made.close * scale)


@pytest.mark.parametrize("name", ["resnet18", "squeezenet1_1"])
def test_S04_a_marked_model_has_the_gradients_of_an_edited_copy(name):
    if vision is None:
        pytest.skip("torchvision is missing")
    module, arrays = MODELS[name].make()
    edited = copy.deepcopy(module.double().eval())
    for part in edited.modules():
        if isinstance(part, nn.ReLU):
            part.forward = Guided.apply
    marked = gg.interop.retrofit(module, lambda graph: graph.mark("Relu", gg.rules.guided()))
    plain, wanted, found = (gradients(m, arrays, False) for m in (module, edited, marked))
    assert not np.allclose(plain[1], wanted[1])
    for a, b in zip(found, wanted, strict=True):
        scale = max(1.0, float(np.abs(b).max(initial=0)))
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-10 * scale)
