"""What people try first, in the words of other libraries, and what they write here instead.

`FIRST_TRIES` is the data: whose name it would be -> the name -> the answer. A module asks
`unknown_name` in its `__getattr__`; a class is given the names by `answer`. Either way the name is
not there: hasattr is False, and the error is an AttributeError whose text ends in the answer.
docs/first_tries.md shows them, written by `python tools/first_tries.py --write`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

VALUE = "A tensor has no value. gg.evaluate(t, feeds) gives one; gg.compile makes a function."
NO_TAPE = "Gradients are nodes that are asked for: gg.gradients(loss, xs); nothing is recorded."
NO_DEVICE = "Tensors are on no device: gg.compile(..., backend=...) says what runs them."
NO_LAYERS = "There are no layer objects: a layer is a function of tensors and gg.variable."
TRAINING = "Optimisers are in gg.optimizers: gg.optimizers.Adam(1e-3).minimize(loss)."
SHAPES = "t.shape is a tuple; gg.reshape gives another shape."
IN_PLACE = "A tensor never changes: use the new tensor that a function returns."
VARIABLE = "Write gg.variable(initial, name=...)."
COMPILE = "Write gg.compile(inputs, outputs), or @gg.function over a function of tensors."
RUN = "gg.compile(inputs, outputs) makes a function of arrays; gg.Session().run(fetches, feeds)."
NO_START = "Variables have their initial values from the start: there is nothing to run first."
SEED = "Give a draw or an initial value its seed=, or the whole graph one: gg.random.seed(0)."
RULES = "Write @gg.custom_gradient, or a rule with @gg.register_gradient."


def _called(names: str) -> dict[str, str]:
    """Methods elsewhere that are functions of gg."""
    return {name: f"Write gg.{name}(t)." for name in names.split()}


def _each(names: str, answer: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), answer)


FIRST_TRIES: dict[str, dict[str, str]] = {
    "graphgrad": {
        **_each("grad jacrev backward", "Write gg.gradients(ys, xs), or gg.value_and_grad(fn)."),
        "jacfwd": "Write gg.jacobian(y, x), or gg.jvp for one direction.",
        **_each("GradientTape tape autograd", NO_TAPE),
        **_each("no_grad enable_grad set_grad_enabled", NO_TAPE),
        **_each("detach stop_grad", "Write gg.stop_gradient(t)."),
        **_each("custom_vjp custom_jvp", RULES),
        **_each("optim optimizer train", TRAINING),
        **_each("Module Sequential Linear Dense layers keras", NO_LAYERS),
        **_each("tensor from_numpy convert_to_tensor", "Write gg.constant(value)."),
        **_each("Variable Parameter get_variable", VARIABLE),
        **_each("Placeholder Input", "Write gg.placeholder(shape, dtype, name=...)."),
        **_each("jit script defun pmap", COMPILE),
        **_each("run eval", RUN),
        **_each("InteractiveSession ConfigProto", "Write gg.Session()."),
        **_each("global_variables_initializer initialize_all_variables", NO_START),
        **_each("manual_seed set_random_seed", SEED),
        **_each("rand randn", "Write gg.random.uniform(shape), gg.random.normal(shape)."),
        **_each("device cuda", NO_DEVICE),
        "get_default_graph": "Write gg.default_graph().",
        "reduce_sum": "Write gg.sum(t, axis).",
        "reduce_mean": "Write gg.mean(t, axis).",
        "reduce_max": "Write gg.max(t, axis).",
        "reduce_min": "Write gg.min(t, axis).",
        "cat": "Write gg.concat(tensors, axis).",
        "unsqueeze": "Write gg.expand_dims(t, axis).",
        "permute": "Write gg.permute_dims(t, axes).",
        "gather": "Write gg.take(t, indices, axis).",
        "clip_by_value": "Write gg.clip(t, low, high).",
        "clip_by_norm": "Write gg.optimizers.clip_by_norm(grads, norm).",
        **_each("data DataLoader Dataset", "Write gg.training.batches(arrays, size, seed=0)."),
        "tqdm": "Write gg.training.progress(steps).",
        "while": "Write gg.while_loop.",
        "Print": "Write gg.debug.print.",
    },
    "graphgrad.nn": {
        **_each("Module Sequential Linear Conv2d Dropout BatchNorm2d ReLU", NO_LAYERS),
        **_each("Parameter", VARIABLE),
        **_each("functional", "The functions are in gg.nn itself: gg.nn.relu, gg.nn.conv."),
        **_each("conv1d conv2d conv3d", "Write gg.nn.conv: it goes by the shapes."),
        **_each(
            "sigmoid_cross_entropy sigmoid_cross_entropy_with_logits BCEWithLogitsLoss",
            "Write gg.nn.binary_cross_entropy_with_logits.",
        ),
        **_each(
            "softmax_cross_entropy softmax_cross_entropy_with_logits CrossEntropyLoss",
            "Write gg.nn.cross_entropy.",
        ),
        "MSELoss": "Write gg.nn.mse_loss.",
        "erf": "Write gg.special.erf.",
        "tanh": "Write gg.tanh.",
    },
    "graphgrad.optimizers": {
        **_each("Adadelta Adamax LBFGS Lion", "Write a subclass of gg.optimizers.Optimizer."),
        **_each("GradientDescentOptimizer MomentumOptimizer", "Write gg.optimizers.SGD."),
        "AdamOptimizer": "Write gg.optimizers.Adam.",
        "lr_scheduler": "learning_rate= takes a schedule, such as gg.optimizers.cosine_decay.",
        "constant": "learning_rate= takes a number as it is.",
        "clip_by_value": "Write gg.clip for each gradient.",
        "clip_grad_norm_": "Write gg.optimizers.clip_by_global_norm.",
    },
    "graphgrad.random": {
        **_each("rand random random_sample", "Write gg.random.uniform(shape)."),
        **_each("randn standard_normal", "Write gg.random.normal(shape)."),
        **_each("manual_seed", SEED),
    },
    "Tensor": {
        **_each("backward grad_fn retain_grad register_hook", NO_TAPE),
        "grad": "Write gg.gradients(loss, t): a gradient is a tensor of its own.",
        **_each("requires_grad requires_grad_ is_leaf", NO_TAPE),
        "detach": "Write gg.stop_gradient(t).",
        **_each("numpy eval value values data", VALUE),
        **_each("cpu cuda to", NO_DEVICE + " t.astype casts."),
        **_each("float double long half type_as", "Write t.astype(dtype)."),
        **_each("view view_as expand", SHAPES),
        **_each("get_shape set_shape dim", SHAPES),
        **_each("unsqueeze", "Write gg.expand_dims(t, axis)."),
        **_each("permute", "Write t.transpose(axes)."),
        **_each("clone contiguous copy", "A tensor never changes: use it as it is."),
        **_each("add_ sub_ mul_ div_ zero_ copy_ fill_ clamp_ masked_fill_", IN_PLACE),
        "masked_fill": "Write gg.where(mask, value, t).",
        "clamp": "Write gg.clip(t, low, high).",
        **_each("assign assign_add assign_sub", "Write gg.assign(variable, value)."),
        **_each("at", "Write gg.at(t)[index].set(value)."),
        **_called("abs exp log sqrt square sin cos tan tanh matmul sign floor ceil isnan"),
        **{name: f"Write gg.nn.{name}(t)." for name in ("relu", "softmax", "sigmoid")},
        "norm": "Write gg.linalg.norm(t).",
    },
    "Optimizer": {
        **_each("step", "Fetch what minimize(loss) returns, or give compile `updates`."),
        **_each("zero_grad", "Gradients are not added up: gg.gradients makes new nodes."),
        **_each("apply_gradients apply", "Write minimize(loss), or updates(params, grads)."),
        **_each("compute_gradients", "Write gg.gradients(loss, params)."),
        **_each("param_groups", "Write an optimiser for each group of variables."),
    },
    "CompiledFunction": {
        **_each("run eval forward", "Call it: f(array)."),
        **_each("backward grad", "Compile gg.gradients(y, x) as one of its outputs."),
    },
    "Session": {
        **_each("partial_run make_callable", "Write gg.compile(inputs, outputs)."),
    },
}


def unknown_name(
    module: str, name: str, elsewhere: Mapping[str, Iterable[str]] | None = None
) -> AttributeError:
    """The error for a name that a module does not have.

    elsewhere  names that are in other modules: module -> its names
    """
    said = f"module {module!r} has no attribute {name!r}"
    if name.startswith("_"):
        return AttributeError(said)
    answer = FIRST_TRIES[module].get(name)
    if answer is None:
        spellings = [f"gg.{m}.{name}" for m, names in (elsewhere or {}).items() if name in names]
        answer = f"Write {' or '.join(spellings)}." if spellings else None
    return _answered(said, name, answer) if answer else AttributeError(said)


def _answered(said: str, name: str, answer: str) -> AttributeError:
    """With the name alone: else Python would add the name of another attribute."""
    return AttributeError(f"{said}.\n{answer}", name=name)


class Answer:
    """A name that a class does not have, and what to write instead."""

    __slots__ = ("name", "text")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        kind = f"{owner.__name__!r} object" if instance is not None else f"{owner.__name__!r}"
        raise _answered(f"{kind} has no attribute {self.name!r}", self.name, self.text)


class AnswerToAssigning(Answer):
    """One of a class whose objects take no attributes: `t.requires_grad = True` is answered too."""

    __slots__ = ()

    def __set__(self, instance: Any, value: Any) -> NoReturn:
        self.__get__(instance, type(instance))


def answer(cls: type) -> None:
    """Give a class the names of its first tries. Its subclasses and their objects may have them."""
    kind = Answer if cls.__dictoffset__ else AnswerToAssigning
    for name, text in FIRST_TRIES[cls.__name__].items():
        setattr(cls, name, kind(name, text))


def listed(cls: type, names: Iterable[str]) -> list[str]:
    """Of the names in `dir` those that are there."""
    return sorted(set(names) - set(FIRST_TRIES[cls.__name__]))
