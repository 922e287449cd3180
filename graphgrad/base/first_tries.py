"""What people try first, in the words of other libraries, and what they write here instead.

`FIRST_TRIES` is the data: whose name it would be -> the name -> the answer. A module asks
`unknown_names` for its `__getattr__`; a class is given the names by `answer`. Either way the name
is not there: hasattr is False, and the error is an AttributeError whose text ends in the answer.
docs/first_tries.md shows them, written by `python tools/first_tries.py --write`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, NoReturn

VALUE = "A tensor has no value. gg.evaluate(t, feeds) gives one; gg.compile makes a function."
NO_TAPE = "Build gradients as nodes with gg.gradients(loss, xs); nothing is recorded."
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
PICTURES = "Write gg.write_html(tensors, path), gg.write_dot or gg.write_picture."
GUIDED = "Write gg.rules.guided()."
LRP = "Write gg.rules.lrp_epsilon(), lrp_gamma, lrp_alpha_beta, ...: gg.attribute(method='lrp')."
CLIPPING = "Write gg.rules.clip_value(limit) or gg.rules.clip_norm(limit)."
CONV = "Write gg.nn.conv(x, kernel): the number of axes is that of the arrays."
POOL = "Write gg.nn.max_pool or gg.nn.avg_pool: the number of axes is that of the window."
KEYS = "Draws take seed= or a key: gg.random.fold_in, gg.random.split and gg.random.bits."
LOOPS = "Write gg.scan, gg.fori_loop, gg.while_loop or gg.map."
BROADCAST = "Write gg.broadcast_to(t, shape)."
DTYPES = "Write NumPy's dtype, or its name: t.astype('float32')."
ONNX = "Write gg.onnx.load(path) and gg.onnx.export(function, path)."
MATMUL = "Write a @ b, gg.matmul(a, b) or gg.einsum."
SLICES = "Write gg.dynamic_slice(t, starts, sizes)."
PUT = "Write gg.at(t)[index].set(values), or .add, .multiply, .min, .max."
LOADED = "Write gg.evaluate(fetches, feeds): nothing runs before it is fetched."


MODULES = (
    *("gg", "gg.nn", "gg.special", "gg.linalg", "gg.fft", "gg.random", "gg.rules"),
    *("gg.optimizers", "gg.training", "gg.initializers", "gg.debug", "gg.onnx", "gg.interop"),
)
"""Where a name is looked for that another public module does not have."""


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
        **_each("draw plot visualize visualise show make_dot plot_model draw_graph", PICTURES),
        **_each("load_onnx to_onnx from_onnx", ONNX),
        **_each("conv conv1d conv2d conv3d conv_general_dilated", CONV),
        **_each(
            "conv_transpose1d conv_transpose2d conv2d_transpose", "Write gg.nn.conv_transpose."
        ),
        **_each("max_pool1d max_pool2d avg_pool1d avg_pool2d reduce_window", POOL),
        **_each("mm bmm baddbmm addmm batch_matmul dot_general mv", MATMUL),
        **_each("lgamma", "Write gg.special.gammaln."),
        **_each("igamma igammac", "Write gg.special.gammainc, gg.special.gammaincc."),
        **_each("erf_inv", "Write gg.special.erfinv."),
        **_each("mvlgamma", "Write gg.special.multigammaln."),
        **_each("adam Adam AdamW adamw sgd SGD rmsprop adagrad momentum Optimizer", TRAINING),
        **_each("clip_grad_norm_ clip_by_global_norm", "Write gg.optimizers.clip_by_global_norm."),
        **_each("clamp clamp_min clamp_max", "Write gg.clip(t, low, high)."),
        **_each("div truediv", "Write a / b, or gg.divide."),
        **_each("mul", "Write a * b, or gg.multiply."),
        **_each("sub", "Write a - b, or gg.subtract."),
        **_each("neg", "Write -t, or gg.negative."),
        **_each("rem", "Write gg.remainder or gg.fmod."),
        **_each("eq ne lt le gt ge", "Write a == b, a < b, ...: gg.equal, gg.less, ..."),
        **_each("rsqrt", "Write 1 / gg.sqrt(t)."),
        **_each("frac", "Write t - gg.trunc(t)."),
        **_each("iota", "Write gg.arange(n)."),
        **_each("swish hard_swish hardswish", "Write gg.nn.silu, gg.nn.hard_silu."),
        **_each("split_with_sizes chunk", "Write gg.split(t, sections, axis)."),
        **_each("unbind", "Write gg.unstack(t, axis)."),
        **_each("repeat_interleave", "Write gg.repeat(t, repeats, axis)."),
        **_each("index_select", "Write gg.take(t, indices, axis)."),
        **_each("gather_nd", "Write t[i, j] with tensors for i and j."),
        **_each("scatter scatter_nd index_add index_copy index_put", PUT),
        **_each("index_fill masked_fill masked_select put putmask place fill_diagonal", PUT),
        **_each("tensor_scatter_nd_update tensor_scatter_nd_add", PUT),
        **_each("narrow slice dynamic_slice_in_dim dynamic_index_in_dim", SLICES),
        **_each("expand expand_as broadcast broadcast_in_dim broadcast_tensors", BROADCAST),
        **_each("foldl foldr map_fn fori for_loop", LOOPS),
        **_each("range", "Write gg.arange(n) for numbers, gg.fori_loop or gg.scan for runs."),
        **_each("case switch_case", "Write gg.switch(index, functions)."),
        **_each("remat checkpoint_wrapper recompute_grad", "Write gg.rules.checkpoint(fn)."),
        **_each("identity_n", "Write gg.identity(t)."),
        **_each("fake_quant fake_quantize FakeQuantize", "Write gg.rules.fake_quantise(...)."),
        **_each("straight_through STE ste_round", "Write gg.rules.ste()."),
        **_each("GradientReversal gradient_reversal reverse_gradient", "Write gg.rules.reverse()."),
        **_each("custom_function", RULES),
        **_each("vectorized_map batch", "Write gg.vmap(fn)."),
        **_each("make_jaxpr symbolic_trace", "Write gg.graph_text(tensors)."),
        **_each("double half float int long bool_ dtype issubdtype", DTYPES),
        **_each("convert_element_type", "Write t.astype(dtype)."),
        **_each(
            "ndarray Array", "Feeds and results are NumPy's arrays; gg.Tensor is a node's output."
        ),
        **_each("as_tensor", "Write gg.constant(value)."),
        **_each("mgrid ogrid", "Write gg.meshgrid(...)."),
        **_each("r_ c_ s_", "Write gg.concat(tensors, axis) or gg.stack."),
        **_each("row_stack", "Write gg.vstack(tensors)."),
        **_each("histc", "Write gg.histogram(t, bins)."),
        **_each("bucketize", "Write gg.searchsorted(edges, t)."),
        **_each("cdist", "Write gg.linalg.norm(a[:, None] - b[None], axis=-1)."),
        **_each("inverse", "Write gg.linalg.inv."),
        **_each("logdet", "Write gg.linalg.slogdet(t).logabsdet."),
        **_each("chain_matmul", "Write gg.linalg.multi_dot."),
        **_each("block_until_ready synchronize", LOADED),
        **_each(
            "debug_nans set_detect_anomaly check_numerics", "Write gg.debug.blame(loss, xs, feeds)."
        ),
        **_each("device_put set_default_device", NO_DEVICE),
        **_each(
            "tree_map tree tree_util pytree", "Functions take and return nested lists and dicts."
        ),
        **_each("lax numpy scipy", "Their functions are gg's own: gg.sum, gg.special.erf."),
        **_each("is_tensor", "Write isinstance(t, gg.Tensor)."),
        **_each("numel", "Write t.size, or gg.size(t)."),
        **_each(
            "save_weights load_weights state_dict", "Write gg.save(path, graph), gg.load(path)."
        ),
        **_each("Saver train_checkpoint CheckpointManager", "Write gg.Checkpoints(folder)."),
        **_each("lerp", "Write a + t * (b - a)."),
        **_each(
            "addcmul addcdiv", "Write a + value * b * c: it becomes one loop when it is compiled."
        ),
        **_each("upsample", "Write gg.nn.interpolate."),
        **_each("set_printoptions printoptions", "Arrays are NumPy's: numpy.set_printoptions."),
    },
    "graphgrad.rules": {
        **_each("STE StraightThrough identity", "Write gg.rules.ste()."),
        **_each(
            "gradient_reversal GradientReversal grad_reverse reversal", "Write gg.rules.reverse()."
        ),
        **_each(
            "clip clip_gradient clip_grad gradient_clipping clip_by_value clip_by_norm", CLIPPING
        ),
        **_each("lrp LRP epsilon gamma alpha_beta zbox zplus", LRP),
        **_each("guided_backprop guided_relu GuidedBackprop guided_backpropagation", GUIDED),
        **_each("deconvolution deconv", "Write gg.rules.deconvnet()."),
        **_each("superspike SuperSpike", "Write gg.rules.fast_sigmoid(slope)."),
        **_each("arctan ATan", "Write gg.rules.atan()."),
        **_each("triangular hat", "Write gg.rules.triangle()."),
        **_each("redirected_relu RedirectedReLU", "Write gg.rules.redirected()."),
        **_each(
            "fake_quant fake_quantize FakeQuantize quantize", "Write gg.rules.fake_quantise(...)."
        ),
        **_each("LSQ learned_step_size", "Write gg.rules.lsq(x, step, bits=8)."),
        **_each("PACT", "Write gg.rules.pact(x, limit, bits=8)."),
        **_each("remat rematerialize checkpoints", "Write gg.rules.checkpoint(fn)."),
        **_each("deq fixedpoint", "Write gg.rules.fixed_point, gg.rules.root or linear_solve."),
        **_each("stop_gradient zero", "Write gg.rules.stop(), or gg.stop_gradient(t)."),
        **_each("scale_gradient gradient_scale multiply", "Write gg.rules.scale(factor)."),
        **_each("deep_lift DeepLift deepshap", "Write gg.rules.deeplift(...), or gg.attribute."),
        **_each("softplus", "Write gg.rules.log1pexp(), or gg.nn.softplus(t)."),
        **_each("nan_to_num", "Write gg.rules.nan_guard()."),
        **_each("custom_gradient register", RULES),
    },
    "graphgrad.debug": {
        **_each(
            "check_nans check_numerics enable_check_numerics detect_anomaly",
            "Write gg.debug.blame, or gg.debug.nan_guard(t).",
        ),
        **_each("Print callback", "Write gg.debug.print(t)."),
        **_each(
            "breakpoint set_trace", "Write gg.debug.values(fetches, feeds): every node's value."
        ),
        **_each("diff", "Write gg.debug.compare(a, b, feeds), or gg.graph_diff."),
    },
    "graphgrad.training": {
        **_each("Trainer fit train", TRAINING),
        **_each("DataLoader Dataset", "Write gg.training.batches(arrays, size, seed=0)."),
        **_each("tqdm", "Write gg.training.progress(steps)."),
        **_each("Checkpoint CheckpointManager Saver", "Write gg.Checkpoints(folder)."),
    },
    "graphgrad.initializers": {
        **_each("xavier_uniform xavier_uniform_", "Write gg.initializers.glorot_uniform."),
        **_each("xavier_normal xavier_normal_", "Write gg.initializers.glorot_normal."),
        **_each("kaiming_uniform kaiming_uniform_", "Write gg.initializers.he_uniform."),
        **_each("kaiming_normal kaiming_normal_", "Write gg.initializers.he_normal."),
        **_each(
            "variance_scaling VarianceScaling", "Write gg.initializers.he_normal and its like."
        ),
        **_each("truncated_normal", "Write gg.random.truncated_normal(shape)."),
        "constant": "Write gg.variable(numpy.full(shape, value)).",
    },
    "graphgrad.special": {
        "lgamma": "Write gg.special.gammaln.",
        "erf_inv": "Write gg.special.erfinv.",
        "psi": "Write gg.special.digamma.",
        **_each("igamma igammac", "Write gg.special.gammainc, gg.special.gammaincc."),
        **_each("lbeta", "Write gg.special.betaln."),
    },
    "graphgrad.linalg": {
        **_each("mm bmm", MATMUL),
        **_each("inverse", "Write gg.linalg.inv."),
        **_each("logdet", "Write gg.linalg.slogdet(t).logabsdet."),
        **_each("cholesky_solve", "Write gg.linalg.cho_solve."),
        **_each("triangular_solve", "Write gg.linalg.solve_triangular."),
        **_each("matrix_exp", "Write gg.linalg.expm."),
        **_each("band_part", "Write gg.tril and gg.triu."),
    },
    "graphgrad.fft": {
        **_each("rfft3 fft3 rfft3d fft3d", "Write gg.fft.fftn, gg.fft.rfftn."),
        **_each("dct", "Write it by gg.fft.rfft of the array and its mirror."),
        **_each("fft2d rfft2d", "Write gg.fft.fft2, gg.fft.rfft2."),
    },
    "graphgrad.onnx": {
        **_each("load_model from_onnx ModelProto InferenceSession", ONNX),
        **_each("save save_model to_onnx dump", "Write gg.onnx.export(function, path)."),
        **_each("gradients grad", "Write gg.onnx.differentiate(model, of, wrt)."),
    },
    "graphgrad.interop": {
        **_each("jax2tf call_tf from_tensorflow", "Write gg.tf1 for TensorFlow's graphs."),
        **_each("from_onnx to_onnx", ONNX),
        **_each(
            "from_flax from_equinox from_haiku trace", "Write gg.interop.open_jax(fn, *tensors)."
        ),
        **_each("from_module", "Write gg.interop.open_torch(module, *tensors)."),
    },
    "Graph": {
        **_each("draw plot show visualize render view", PICTURES),
        **_each("as_graph_def SerializeToString to_json serialize", "Write gg.save(path, graph)."),
        **_each("get_operations operations", "Write graph.nodes."),
        **_each("get_tensor_by_name", "Write graph.tensor(name)."),
        **_each("get_operation_by_name", "Write graph.node(name)."),
        **_each("gradients backward", "Write gg.gradients(ys, xs)."),
        **_each("run eval compile", RUN),
        "override_gradient": "Write `with gg.override_gradient(rule):`, or graph.mark.",
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
        **_each("dense fully_connected dense_general", "Write gg.nn.linear, or x @ w + b."),
        **_each("max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d pool", POOL),
        **_each("swish", "Write gg.nn.silu."),
        **_each("hardswish hard_swish", "Write gg.nn.hard_silu."),
        **_each("hardsigmoid", "Write gg.nn.hard_sigmoid."),
        **_each("hardtanh", "Write gg.nn.hard_tanh."),
        **_each("logsigmoid", "Write gg.nn.log_sigmoid."),
        **_each("softsign", "Write gg.nn.soft_sign."),
        **_each("upsample resize", "Write gg.nn.interpolate."),
        **_each(
            "attention multi_head_attention MultiheadAttention",
            "Write gg.nn.dot_product_attention.",
        ),
        **_each(
            "LSTM GRU RNN lstm", "Write the cell as a function of tensors, and gg.scan over it."
        ),
        **_each("Embedding", "Write gg.nn.embedding."),
        **_each("LayerNorm", "Write gg.nn.layer_norm."),
        **_each("pad", "Write gg.pad."),
        "erf": "Write gg.special.erf.",
        "tanh": "Write gg.tanh.",
    },
    "graphgrad.optimizers": {
        **_each("Adadelta Adamax LBFGS Lion", "Write a subclass of gg.optimizers.Optimizer."),
        **_each("GradientDescentOptimizer MomentumOptimizer", "Write gg.optimizers.SGD."),
        **_each("sgd Momentum momentum Nesterov", "Write gg.optimizers.SGD(rate, momentum=0.9)."),
        **_each("adam", "Write gg.optimizers.Adam."),
        **_each("adamw", "Write gg.optimizers.AdamW."),
        **_each("adagrad Adagrad", "Write gg.optimizers.AdaGrad."),
        **_each("rmsprop RMSprop", "Write gg.optimizers.RMSProp."),
        **_each(
            "apply_updates chain", "Write optimizer.minimize(loss), or updates(params, grads)."
        ),
        **_each("cosine_schedule cosine_annealing", "Write gg.optimizers.cosine_decay."),
        "AdamOptimizer": "Write gg.optimizers.Adam.",
        "lr_scheduler": "learning_rate= takes a schedule, such as gg.optimizers.cosine_decay.",
        "constant": "learning_rate= takes a number as it is.",
        "clip_by_value": "Write gg.clip for each gradient.",
        "clip_grad_norm_": "Write gg.optimizers.clip_by_global_norm.",
    },
    "graphgrad.random": {
        **_each("rand random random_sample", "Write gg.random.uniform(shape)."),
        **_each("randn standard_normal", "Write gg.random.normal(shape)."),
        **_each("manual_seed set_seed RandomState default_rng", SEED),
        **_each("PRNGKey key Generator wrap_key_data", KEYS),
        **_each("randint", "Write gg.random.integers(low, high, shape)."),
        **_each("randperm permute", "Write gg.random.permutation(n)."),
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
        **_each("save", "Write gg.save(path, graph), or gg.Checkpoints(folder)."),
        **_each("draw plot show", PICTURES),
        **_each("mm bmm", MATMUL),
        **_each("narrow", SLICES),
        **_each("scatter scatter_ scatter_add scatter_add_ index_add_ index_fill_", PUT),
        **_each("eq ne lt le gt ge", "Write a == b, a < b, ...: gg.equal, gg.less, ..."),
        **_each("block_until_ready", LOADED),
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


def unknown_name(module: str, name: str) -> AttributeError:
    """The error for a name that a public module does not have."""
    said = f"module {module!r} has no attribute {name!r}"
    if name.startswith("_"):
        return AttributeError(said)
    answer = FIRST_TRIES.get(module, {}).get(name)
    if answer is None:
        spellings = [f"{m}.{name}" for m in MODULES if name in import_module(_module(m)).__all__]
        answer = f"Write {' or '.join(spellings)}." if spellings else None
    return _answered(said, name, answer) if answer else AttributeError(said)


def unknown_names(module: str) -> Callable[[str], NoReturn]:
    """The `__getattr__` of a public module."""

    def __getattr__(name: str) -> NoReturn:
        raise unknown_name(module, name)

    return __getattr__


def _module(spelling: str) -> str:
    return spelling.replace("gg", __package__.partition(".")[0], 1)


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
