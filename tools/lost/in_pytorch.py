"""PyTorch: torch.autograd.Function."""

import tempfile
from pathlib import Path

import torch
from rows import elsewhere, own
from torch.utils.checkpoint import checkpoint

NAME = "PyTorch"
VERSIONS = {"torch": torch.__version__}
NOTES = "https://docs.pytorch.org/docs/stable/notes/extending.html"
SAVE = (
    "https://docs.pytorch.org/docs/stable/generated/"
    "torch.autograd.function.FunctionCtx.save_for_backward.html"
)
DOCUMENTED = {
    "saved_value": SAVE,
    "opaque": SAVE,
    "forward": NOTES + "#forward-mode-ad",
    "captured": NOTES,
    "compiled_whole": "https://github.com/pytorch/pytorch/issues/193279",
    "jvp_compiled": "https://github.com/pytorch/pytorch/issues/192985",
    "copied": "https://github.com/pytorch/pytorch/issues/84515",
    "saved": "https://github.com/pytorch/pytorch/issues/106388",
}
NOT_OFFERED = {
    "theirs": "programs of other frameworks are not opened",
    "choose": "a Function has one backward",
}
CANNOT_BE = {
    "misspelt": "a rule is a class and is called by it",
    "value": "there is one forward part, whether a gradient is taken or not",
}


class Cube(torch.autograd.Function):
    """x ** 3 with twice its derivative, as the notes on extending PyTorch have it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy * 6 * x**2


def order(n, function, at=2.0):
    """The n-th derivative of a function."""
    x = torch.tensor(at, dtype=torch.float64, requires_grad=True)
    y = function(x)
    for _ in range(n):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
    return y.item()


def square(x):
    return Cube.apply(x) ** 2


def first():
    return order(1, square)


def many_ops():
    class Many(Cube):
        @staticmethod
        def forward(x):
            return torch.exp(3 * torch.log(x))

    return order(1, lambda x: Many.apply(x) ** 2)


def second():
    return order(2, square)


def kept():
    class Kept(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x**3, 6 * x**2  # what is an output is differentiated

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0], output[1])

        @staticmethod
        def backward(ctx, dy, dslope):
            x, slope = ctx.saved_tensors
            return dy * slope + dslope * 12 * x

    return order(2, lambda x: Kept.apply(x)[0] ** 2)


@own("second order, when the rule reads a saved value that is not an output", 1536.0)
def saved_value():
    """The second derivative treats a value that `forward` computes as a constant, whether it is
    passed to `save_for_backward` or kept as an attribute of `ctx`, unless it is also returned.
    """

    class Saved(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(6 * x**2)
            return x**3

        @staticmethod
        def backward(ctx, dy):
            (slope,) = ctx.saved_tensors
            return dy * slope

    return order(2, lambda x: Saved.apply(x) ** 2)


@own("forward mode in a compiled function (torch.func.jvp)", 384.0)
def jvp_compiled():
    """The compiler inlines the forward pass as plain code, which `jvp` then differentiates."""

    def moved(x):
        return torch.func.jvp(square, (x,), (torch.ones_like(x),))[1]

    compiled = torch.compile(moved, backend="aot_eager", fullgraph=True)
    return compiled(torch.tensor(2.0, dtype=torch.float64)).item()


@own("two rules for one op (torch.library)", "an error")
def two_rules():
    """The second replaces the first silently."""

    @torch.library.custom_op("lost::cube", mutates_args=())
    def cube(x: torch.Tensor) -> torch.Tensor:
        return x**3

    cube.register_autograd(lambda ctx, dy: dy * 24.0)
    cube.register_autograd(lambda ctx, dy: dy * 1.0)
    return order(1, lambda x: cube(x) ** 2)


def branch():
    class Branch(Cube):
        @staticmethod
        def backward(ctx, dy):
            return Cube.backward(ctx, dy) if dy > 0 else torch.zeros_like(dy)

    return order(1, lambda x: Branch.apply(x) ** 2)


def opaque():
    """`once_differentiable` marks such a rule, but `torch.autograd.grad` ignores the mark and
    returns the part of the derivative that it finds.
    """

    class Opaque(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, dy):
            (x,) = ctx.saved_tensors
            return torch.tensor(dy.numpy() * 6 * x.numpy() ** 2)

    return order(2, lambda x: x * Opaque.apply(x) ** 2)


def forward():
    x = torch.tensor(2.0, dtype=torch.float64)
    return torch.func.jvp(square, (x,), (torch.ones_like(x),))[1].item()


class Normalised(torch.autograd.Function):
    """The identity, with a rule that normalises."""

    generate_vmap_rule = True

    @staticmethod
    def forward(v):
        return v.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, dy):
        return dy / dy.norm()


def normalised(v):
    return (Normalised.apply(v) ** 2).sum()


def per_example():
    batch = torch.tensor([[3.0, 4.0], [6.0, 8.0]], dtype=torch.float64)
    return torch.func.vmap(torch.func.grad(normalised))(batch).tolist()


def through_vmap():
    batch = torch.tensor([[3.0, 4.0], [6.0, 8.0]], dtype=torch.float64, requires_grad=True)
    torch.func.vmap(normalised)(batch).sum().backward()
    return batch.grad.tolist()


def compiled():
    return order(1, torch.compile(square, backend="aot_eager", fullgraph=True))


def compiled_whole():
    """The compiler inlines the forward pass as plain code, which `grad` then differentiates."""
    slope = torch.compile(torch.func.grad(square), backend="aot_eager", fullgraph=True)
    return slope(torch.tensor(2.0, dtype=torch.float64)).item()


def compiled_second():
    return order(2, torch.compile(square, backend="aot_eager", fullgraph=True))


def checkpointed():
    return order(1, lambda x: checkpoint(square, x, use_reentrant=False))


def in_loop():
    def twice(x):
        for _ in range(2):
            x = Cube.apply(x)
        return x

    return order(1, twice)


def around_loop():
    class Loop(Cube):
        @staticmethod
        def forward(x):
            y = torch.ones_like(x)
            for _ in range(3):
                y = y * x
            return y

    return order(1, lambda x: Loop.apply(x) ** 2)


class Square(torch.nn.Module):
    """The square of the step, as a module."""

    def forward(self, x):
        return square(x)


def copied():
    """`symbolic_trace` calls `forward` with proxies and records the ops applied to them: the trace
    does not contain the rule. (copy.deepcopy of a module keeps it.)
    """
    return order(1, torch.fx.symbolic_trace(Square()))


def saved():
    """torch.export keeps the ops of the forward pass, and the loaded program has their
    derivatives. (torch.save keeps the name of the class, which must be importable on loading.)
    """
    example = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cube.pt2"
        torch.export.save(torch.export.export(Square(), (example,)), path)
        return elsewhere(f"""
import torch
square = torch.export.load({str(path)!r}).module()
x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
(dx,) = torch.autograd.grad(square(x), x)
print(dx.item())
""")


def afterwards():
    """By a hook of the module."""
    tanh = torch.nn.Tanh()
    tanh.register_full_backward_hook(lambda module, dx, dy: dy)
    return order(1, lambda x: 3 * tanh(x))


def captured():
    """A tensor that is not an argument gets no gradient."""

    def answer(x):
        w = x.clone()

        class Captured(Cube):
            @staticmethod
            def forward(x):
                return w * x**3

        return Captured.apply(x)

    return order(1, answer)


def shape():
    """A gradient of a shape that the input broadcasts to is summed to the input's shape."""

    class Wide(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, dy):
            return dy.expand(3, 2)

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    Wide.apply(x).sum().backward()
    return x.grad.tolist()


def dtype():
    """It is cast to the input's dtype; the precision that it lost on the way is not restored."""

    class Narrow(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, dy):
            return (dy / 3).to(torch.float32)

    return order(1, Narrow.apply)
