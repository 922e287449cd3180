"""Small models of PyTorch that people differentiate where they run, with open axes."""

import itertools
import math
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional


class Model(nn.Module):
    """A function of layers and tensors."""

    def __init__(self, f, **layers):
        super().__init__()
        self.f = f
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, *xs):
        return self.f(self, *xs)


def mlp(*sizes, act=nn.SiLU):
    layers = [part for a, b in itertools.pairwise(sizes) for part in (nn.Linear(a, b), act())]
    return nn.Sequential(*layers[:-1])


def lennard_jones(_, pos):
    """Of open boundaries, softened."""
    r2 = ((pos[:, None] - pos[None]) ** 2).sum(-1) + 0.5
    s = 1 / r2**3
    return 0.5 * ((s * s - s) * (1 - torch.eye(pos.shape[0]).to(pos))).sum()


def crystal(m, pos, strain):
    """Energy of atoms in a strained cell."""
    moved = pos @ (torch.eye(3).to(pos) + strain)
    d = moved[:, None] - moved[None]
    return m.net(torch.exp(-(d**2).sum(-1, keepdim=True))).sum()


def black_scholes(_, spot, vol, years):
    d1 = (torch.log(spot) + (0.02 + vol**2 / 2) * years) / (vol * torch.sqrt(years))
    d2 = d1 - vol * torch.sqrt(years)
    cdf = lambda d: 0.5 * (1 + torch.erf(d / math.sqrt(2)))  # noqa: E731
    return spot * cdf(d1) - torch.exp(-0.02 * years) * cdf(d2)


def arm(_, angles):
    """The end of a robot's arm of three links."""
    total = torch.cumsum(angles, 1)
    return torch.stack([torch.cos(total).sum(1), torch.sin(total).sum(1)], 1)


def attention(m, x):
    q, k, v = m.qkv(m.norm(x)).chunk(3, -1)
    h = x + torch.softmax(q @ k.transpose(1, 2) / 2.0, -1) @ v
    return m.head(F.gelu(m.wide(h)).mean(1))


def hamilton(m, q, p):
    return (p * p).sum(1) / 2 + m.net(q)[:, 0]


def slater(m, pos):
    """The logarithm of the square of a determinant of orbitals: electrons (N, 3, 3)."""
    a = m.net(pos)
    det = (
        a[..., 0, 0] * (a[..., 1, 1] * a[..., 2, 2] - a[..., 1, 2] * a[..., 2, 1])
        - a[..., 0, 1] * (a[..., 1, 0] * a[..., 2, 2] - a[..., 1, 2] * a[..., 2, 0])
        + a[..., 0, 2] * (a[..., 1, 0] * a[..., 2, 1] - a[..., 1, 1] * a[..., 2, 0])
    )
    return torch.log(det * det + 0.1)


def chosen(m, x, place):
    """The logarithm of the probability of what was chosen."""
    return torch.gather(torch.log_softmax(m.net(x), -1), 1, place[:, None])[:, 0]


def noise(m, x, t):
    """A step of a network that takes noise away."""
    h = F.silu(m.norm(m.inward(x)) + m.time(t)[:, :, None, None])
    return m.outward(h)


def seen(m, x):
    """Attention as one call of torch."""
    q, k, v = (part.unflatten(-1, (2, 2)).transpose(1, 2) for part in m.qkv(x).chunk(3, -1))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)


def warped(m, x, shift):
    """An image read at places that a network moves."""
    height, width = x.shape[2:]
    down, right = ((2 * torch.arange(n).to(x) + 1) / n - 1 for n in (height, width))
    place = torch.stack([right.expand(height, width), down[:, None].expand(height, width)], -1)
    return F.grid_sample(x, place + m.net(shift)[:, None, None], align_corners=False)


def named(m, x, place):
    """Numbers beside what a table says of a place."""
    return m.net(torch.cat([x, m.table(place)], 1))


def cnn(stride=1):
    return nn.Sequential(
        *(nn.Conv2d(3, 4, 3, stride, padding=1), nn.Softplus(), nn.Conv2d(4, 5, 3), nn.Tanh()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(5, 3)),
    )


def pooled(pool):
    return nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.Tanh(), pool, nn.Conv2d(3, 2, 1))


ATOMS, ROW, IMAGE = {"pos": ("atoms", 3)}, {"x": ("N", 3)}, {"x": ("N", 3, "H", "W")}
IMAGE2 = {"x": ("N", 2, "H", "W")}
MODELS = {
    "lennard_jones": (lambda: Model(lennard_jones), ATOMS),
    "crystal": (lambda: Model(crystal, net=mlp(1, 8, 1)), {**ATOMS, "strain": (3, 3)}),
    "potential": (lambda: Model(lambda m, x: m.net(x).sum(), net=mlp(3, 16, 16, 1)), ROW),
    "distance": (lambda: mlp(3, 16, 1, act=nn.Softplus), ROW),
    "waves": (
        lambda: Model(
            lambda m, x: m.b(torch.sin(3 * m.a(x))), a=nn.Linear(3, 9), b=nn.Linear(9, 2)
        ),
        ROW,
    ),
    "black_scholes": (
        lambda: Model(black_scholes),
        dict.fromkeys(("spot", "vol", "years"), ("N",)),
    ),
    "arm": (lambda: Model(arm), {"angles": ("N", 3)}),
    "attention": (
        lambda: Model(
            attention,
            qkv=nn.Linear(4, 12),
            norm=nn.LayerNorm(4),
            wide=nn.Linear(4, 6),
            head=nn.Linear(6, 3),
        ),
        {"x": ("N", "T", 4)},
    ),
    "hamilton": (
        lambda: Model(hamilton, net=mlp(2, 8, 1, act=nn.Tanh)),
        {"q": ("N", 2), "p": ("N", 2)},
    ),
    "slater": (lambda: Model(slater, net=mlp(3, 6, 3, act=nn.Tanh)), {"x": ("N", 3, 3)}),
    "heat": (lambda: mlp(2, 12, 12, 1, act=nn.Tanh), {"x": ("N", 2)}),
    "dynamics": (
        lambda: Model(lambda m, x, u: x + 0.1 * m.net(torch.cat([x, u], -1)), net=mlp(3, 8, 2)),
        {"x": (2,), "u": (1,)},
    ),
    "chosen": (lambda: Model(chosen, net=mlp(3, 8, 5)), {**ROW, "place": ("N",)}),
    "cnn": (cnn, IMAGE),
    "strided": (lambda: cnn(2), IMAGE),
    "noise": (
        lambda: Model(
            noise,
            inward=nn.Conv2d(2, 4, 3, padding=1),
            norm=nn.GroupNorm(2, 4),
            time=nn.Linear(2, 4),
            outward=nn.Conv2d(4, 2, 3, padding=1),
        ),
        {**IMAGE2, "t": ("N", 2)},
    ),
    "max_pool": (lambda: pooled(nn.MaxPool2d(2)), IMAGE2),
    "max_pool_over": (lambda: pooled(nn.MaxPool2d(3, 2, 1)), IMAGE2),
    "avg_pool": (lambda: pooled(nn.AvgPool2d(2)), IMAGE2),
    "up": (lambda: pooled(nn.Upsample(scale_factor=2, mode="bilinear")), IMAGE2),
    "up_nearest": (lambda: pooled(nn.Upsample(scale_factor=2)), IMAGE2),
    "decoder": (
        lambda: nn.Sequential(nn.ConvTranspose2d(2, 3, 4, 2, 1), nn.GELU(), nn.Conv2d(3, 1, 3)),
        IMAGE2,
    ),
    "lstm": (
        lambda: Model(lambda m, x: m.net(x)[0][:, -1], net=nn.LSTM(3, 4, batch_first=True)),
        {"x": ("N", 5, 3)},
    ),
    "gru": (
        lambda: Model(lambda m, x: m.net(x)[0][:, -1], net=nn.GRU(3, 4, batch_first=True)),
        {"x": ("N", 5, 3)},
    ),
    "seen": (lambda: Model(seen, qkv=nn.Linear(4, 12)), {"x": ("N", "T", 4)}),
    "up_cubic": (lambda: pooled(nn.Upsample(scale_factor=2, mode="bicubic")), IMAGE2),
    "shuffled": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, 1), nn.Mish(), nn.PixelShuffle(2), nn.Conv2d(1, 1, 1)
        ),
        IMAGE2,
    ),
    "normed": (
        lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ELU(), nn.Conv2d(3, 1, 1)),
        IMAGE2,
    ),
    "warped": (
        lambda: Model(warped, net=nn.Sequential(nn.Linear(2, 2), nn.Tanh())),
        {**IMAGE2, "shift": ("N", 2)},
    ),
    "named": (
        lambda: Model(named, net=mlp(5, 8, 2), table=nn.Embedding(5, 2)),
        {**ROW, "place": ("N",)},
    ),
    "ranked": (
        lambda: Model(lambda m, x: torch.topk(m.net(x), 2)[0].prod(1), net=mlp(3, 8, 5)),
        ROW,
    ),
}
"""{name: (what makes it, {input: shape})}: the output is y."""

SIZES = [{"N": 3, "atoms": 4, "H": 6, "W": 7, "T": 5}, {"N": 1, "atoms": 6, "H": 9, "W": 8, "T": 2}]


def exported(name, path, dynamo=False):
    """A model, in float64, and its file, in float32. dynamo: by torch's newer exporter."""
    torch.manual_seed(0)
    make, shapes = MODELS[name]
    model = make().eval()
    examples = tuple(arrays(name, SIZES[0]).values())
    axes = {n: {i: d for i, d in enumerate(s) if isinstance(d, str)} for n, s in shapes.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if dynamo:
            opened = tuple(dict.fromkeys(each, torch.export.Dim.DYNAMIC) for each in axes.values())
            torch.onnx.export(
                model,
                examples,
                input_names=list(shapes),
                output_names=["y"],
                dynamic_shapes=(opened,) if isinstance(model, Model) else opened,
                dynamo=True,
                opset_version=18 if name != "warped" else 20,
                verbose=False,
            ).save(str(path))
            return model.double()
        torch.onnx.export(
            model,
            examples,
            str(path),
            input_names=list(shapes),
            output_names=["y"],
            dynamic_axes=axes,
            dynamo=False,
            opset_version=17 if name != "warped" else 20,
        )
    return model.double()


def arrays(name, sizes, seed=0):
    """{input: tensor of float32, or of places}."""
    rng = np.random.default_rng(seed)
    found = {}
    for n, shape in MODELS[name][1].items():
        lengths = [sizes.get(d, d) for d in shape]
        if n == "place":
            found[n] = torch.tensor(rng.integers(0, 5, lengths))
        else:
            positive = name == "black_scholes"
            a = rng.uniform(0.3, 1.5, lengths) if positive else rng.normal(size=lengths)
            found[n] = torch.tensor(a.astype("float32"))
    return found


def feeds_of(name, sizes, taken, model, seed=1):
    """{input: array} of the model's own inputs and of directions and cotangents beside."""
    rng, own = np.random.default_rng(seed), arrays(name, sizes)
    feeds = {n: t.numpy() for n, t in own.items()}
    for n in taken:
        if n not in feeds:
            of = n.partition("/")[2]
            shape = own[of].shape if of in own else model(*doubled(own).values()).shape
            feeds[n] = rng.normal(size=tuple(shape)).astype("float32")
    return feeds


def doubled(own):
    return {n: t.double() if t.is_floating_point() else t for n, t in own.items()}


@torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)  # others have no hvp
def wanted(name, model, kind, feeds):
    """{output: array} that torch computes in float64."""
    given = {n: torch.tensor(a) for n, a in feeds.items()}
    own = doubled({n: given[n] for n in MODELS[name][1]})
    floating = {n: t for n, t in own.items() if t.is_floating_point()}
    names, xs = list(floating), tuple(t.requires_grad_() for t in floating.values())

    def f(*changed):
        return model(*{**own, **dict(zip(names, changed, strict=True))}.values())

    def directions():
        return tuple(given[f"direction/{n}"].double() for n in names)

    def total(*changed):
        return f(*changed).sum()

    of = torch.autograd.functional
    if kind in ("gradient", "vjp"):
        y = f(*xs)
        dy = given["cotangent/y"].double() if kind == "vjp" else torch.ones_like(y)
        found = dict(zip(names, torch.autograd.grad(y, xs, dy), strict=True))
    elif kind == "jvp":
        found = {"y": of.jvp(f, xs, directions())[1]}
    elif kind == "hvp":
        found = dict(zip(names, of.vhp(total, xs, directions())[1], strict=True))
    elif kind == "jacobian":
        found = {f"y/{n}": j for n, j in zip(names, of.jacobian(f, xs), strict=True)}
    else:
        rows = dict(zip(names, of.hessian(total, xs), strict=True))
        blocks = {(a, b): h for a, row in rows.items() for b, h in zip(names, row, strict=True)}
        found = {f"{a}/{b}": h for (a, b), h in blocks.items()}
        if kind == "laplacian":
            found = {n: blocks[n, n].reshape(x.numel(), -1).trace() for n, x in floating.items()}
    kind = "gradient" if kind == "vjp" else kind
    return {f"{kind}/{n}": t.detach().numpy() for n, t in found.items()}
