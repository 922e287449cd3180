"""AttnLRP and guided backpropagation on a transformer that somebody else wrote, in PyTorch.

`retrofit` opens it. Two marks make gradient times input the relevance of AttnLRP: products of
activations are halved, and what normalises is held [Achtibat et al. 2024, "AttnLRP: attention-aware
layer-wise relevance propagation for transformers"]. The other map is one mark on the relus.
"""

from importlib import import_module
from importlib.util import find_spec

import graphgrad as gg

torch = import_module("torch") if find_spec("torch") else None


def normalised(x, hold=lambda deviation: deviation):
    far = x - x.mean(-1, keepdim=True)
    return far / hold(torch.sqrt((far * far).mean(-1, keepdim=True) + 1e-5))


def transformer(product, norm, relu):
    """A model as its author has it; the three functions are what one would have to edit."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, size=8):
            super().__init__()
            self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
            self.up, self.down = nn.Linear(size, 16), nn.Linear(16, size)

        def forward(self, x):
            q, k, v = self.qkv(norm(x)).chunk(3, -1)
            weights = torch.softmax(product(q, k.transpose(-1, -2)) / 8**0.5, -1)
            x = x + self.out(product(weights, v))
            return (x + self.down(relu(self.up(norm(x))))).mean(1)

    torch.manual_seed(0)
    return nn.Sequential(Block(), nn.Linear(8, 4))


def attn_lrp(graph):
    products = gg.select.op("MatMul").where(lambda node: node.inputs[-1].ndim == 3)
    graph.mark(products, gg.rules.scale(0.5))  # those with weights have a matrix there
    graph.mark("Divide", lambda site, dy: [dy / site.inputs[1], 0.0])


def guided(graph):
    graph.mark("Relu", gg.rules.guided())


def halved(x, y):
    return (x @ y) / 2 + (x @ y / 2).detach()


def passing(x):
    (y := torch.relu(x)).requires_grad and y.register_hook(lambda dy: dy.clamp(min=0.0))
    return y


def relevance(net, tokens):
    x = tokens.clone().requires_grad_()
    net(x)[0, 2].backward()
    return (x * x.grad).detach().sum(-1)[0]


if torch is None:
    print("PyTorch is not installed: pip install torch")
else:
    net = transformer(torch.matmul, normalised, torch.relu)
    tokens = torch.randn(1, 5, 8)
    held = transformer(halved, lambda x: normalised(x, torch.Tensor.detach), torch.relu)
    positive = transformer(torch.matmul, normalised, passing)
    for name, mark, edited in (("AttnLRP", attn_lrp, held), ("guided", guided, positive)):
        marked = gg.interop.retrofit(net, mark)
        torch.testing.assert_close(marked(tokens), net(tokens))
        found = relevance(marked, tokens)
        print(name, [round(float(r), 3) for r in found], "as in an edited copy of the model")
        assert (found - relevance(net, tokens)).abs().max() > 1e-3
        torch.testing.assert_close(found, relevance(edited, tokens))
