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
IN_PLACE = "Tensors are immutable: use the new tensor that a function returns."
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
CALLBACKS = "Write gg.py_function(fn, inputs, out_types)."
UPDATES = "Write gg.compile(..., updates={variable: value}), or gg.assign."
SCHEDULES = "Pass learning_rate= a schedule, such as gg.optimizers.cosine_decay."
CELLS = "Write the cell as a function of tensors, and gg.scan over it."
VARIABLES = "Variables are in the graph: graph.variables. Their values are in a gg.State."
ATTRIBUTION = "Write gg.attribute(model, inputs, method=...)."
HOOKS = "Write gg.override(rule)(function), or graph.mark(tensors, rule, together=True)."
CHECKS = "Write gg.check_gradient(function, arrays)."
SEGMENTS = "Write gg.add_at(gg.zeros(shape), indices, values)."
FILES = "Tensors have no value: save arrays with NumPy, graphs with gg.save."
SHARDS = "Write gg.compile(..., backend='jax', mesh=..., shardings=...)."
MEMORY = "A tensor has no memory, only a type: t.shape, t.dtype."
DENSE = "Tensors are dense: use gg.take and gg.add_at with indices."
IMAGES = "Write gg.nn.interpolate, gg.pad, gg.flip or gg.rot90."
DEPENDENCIES = "Nodes run if a fetch needs them; updates run with gg.compile(..., updates=...)."
WRITTEN = "Write print(f) or f.plans for the plan, gg.graph_text(tensors) for the graph."
STATES = "Write gg.Checkpoints(folder), or gg.export_weights(path, state)."
LOSSES = "Losses are functions: gg.nn.cross_entropy, gg.nn.mse_loss, ..."
LIMITED = "Write gg.rules.clip_value, or gg.optimizers.clip_by_global_norm(grads, norm)."


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
        "grad_and_value": "Write gg.value_and_grad(fn).",
        "jacfwd": "Write gg.jacobian(y, x), or gg.jvp for one direction.",
        **_each("GradientTape tape autograd", NO_TAPE),
        **_each("no_grad enable_grad set_grad_enabled is_grad_enabled inference_mode", NO_TAPE),
        **_each("detach stop_grad stop_gradients", "Write gg.stop_gradient(t)."),
        **_each("custom_vjp custom_jvp ctx", RULES),
        **_each("optim optimizer train", TRAINING),
        **_each("Module Sequential Linear Dense layers keras", NO_LAYERS),
        **_each("ModuleList Conv2d BatchNorm2d LayerNorm Dropout Embedding ReLU", NO_LAYERS),
        **_each("Flatten Identity Transformer MultiheadAttention functional_call", NO_LAYERS),
        **_each("LSTM GRU RNN", CELLS),
        **_each("CrossEntropyLoss MSELoss losses", LOSSES),
        **_each("tensor from_numpy convert_to_tensor", "Write gg.constant(value)."),
        **_each("Variable Parameter get_variable", VARIABLE),
        **_each("Placeholder Input", "Write gg.placeholder(shape, dtype, name=...)."),
        **_each("jit script defun make_functional dynamo fx", COMPILE),
        **_each("pmap psum pmean all_gather axis_index with_sharding_constraint", SHARDS),
        **_each("disable_jit executing_eagerly enable_eager_execution", RUN),
        **_each("disable_eager_execution", "Leave it out: a graph is always built before it runs."),
        **_each("run eval device_get", RUN),
        **_each("InteractiveSession ConfigProto", "Write gg.Session()."),
        **_each("global_variables_initializer initialize_all_variables", NO_START),
        **_each("trainable_variables all_variables global_variables get_collection", VARIABLES),
        "add_to_collection": "Keep the tensors in a list or dict of your own.",
        **_each(
            "variable_scope named_scope named_call colocate_with", "Write gg.name_scope(name)."
        ),
        **_each("control_dependencies group no_op effects_barrier", DEPENDENCIES),
        **_each("assign_add assign_sub", UPDATES),
        **_each(
            "Assert assert_equal", "Write gg.assume for lengths, gg.debug.nan_guard for values."
        ),
        **_each("manual_seed set_random_seed", SEED),
        **_each("rand randn", "Write gg.random.uniform(shape), gg.random.normal(shape)."),
        **_each("rand_like randn_like", "Write gg.random.uniform(t.shape), or gg.random.normal."),
        **_each("random_normal random_uniform", "Write gg.random.normal, gg.random.uniform."),
        "randint": "Write gg.random.integers(low, high, shape).",
        "randperm": "Write gg.random.permutation(n).",
        **_each("device cuda devices local_device_count default_backend backends", NO_DEVICE),
        "get_default_graph": "Write gg.default_graph().",
        "reduce_sum": "Write gg.sum(t, axis).",
        "reduce_mean": "Write gg.mean(t, axis).",
        "reduce_max": "Write gg.max(t, axis).",
        "reduce_min": "Write gg.min(t, axis).",
        "reduce_prod": "Write gg.prod(t, axis).",
        "reduce_any": "Write gg.any(t, axis).",
        "reduce_all": "Write gg.all(t, axis).",
        "reduce_logsumexp": "Write gg.logsumexp(t, axis).",
        "reduce_variance": "Write gg.var(t, axis).",
        "reduce_std": "Write gg.std(t, axis).",
        "cat": "Write gg.concat(tensors, axis).",
        "unsqueeze": "Write gg.expand_dims(t, axis).",
        "permute": "Write gg.permute_dims(t, axes).",
        **_each("movedim swapdims", "Write gg.moveaxis(t, source, destination), gg.swapaxes."),
        "view": "Write gg.reshape(t, shape).",
        "rank": "Write t.ndim.",
        "take_along_dim": "Write gg.take_along_axis(t, indices, axis).",
        "top_k": "Write gg.topk(t, k).",
        "mode": "Write gg.unique_counts(t), and gg.argmax of its counts.",
        "in1d": "Write gg.isin(a, b).",
        "trapz": "Write gg.trapezoid.",
        "logcumsumexp": "Write gg.cumulative_logsumexp(t, axis).",
        "cumulative_trapezoid": "Write gg.cumsum((t[1:] + t[:-1]) / 2).",
        "matrix_inverse": "Write gg.linalg.inv.",
        **_each("add_n accumulate_n", "Write a + b + c, or gg.sum(gg.stack(tensors), 0)."),
        **_each("segment_sum unsorted_segment_sum dynamic_stitch", SEGMENTS),
        **_each("dynamic_partition boolean_mask", "Write t[mask], or gg.where(mask, t, 0)."),
        "sequence_mask": "Write gg.arange(n) < lengths[:, None].",
        **_each("strided_slice", "Write t[start:stop:step]."),
        "tensor_split": "Write gg.array_split(t, sections, axis).",
        **_each("select_n", "Write gg.where(condition, x, y), or gg.choose."),
        **_each("cartesian_prod combinations", "Write gg.meshgrid(...), gg.ravel and gg.stack."),
        **_each("polar complex", "Write x + 1j * y, or r * gg.exp(1j * angle)."),
        "view_as_real": "Write gg.real(t) and gg.imag(t).",
        **_each(
            "bitcast_convert_type bitcast", "Tensors have no bit patterns: t.astype casts values."
        ),
        "renorm": "Write gg.optimizers.clip_by_norm, or gg.nn.normalize.",
        "global_norm": "Write gg.sqrt(gg.sum(gg.stack([gg.sum(g * g) for g in grads]))).",
        "gather": "Write gg.take(t, indices, axis).",
        "clip_by_value": "Write gg.clip(t, low, high).",
        "clip_by_norm": "Write gg.optimizers.clip_by_norm(grads, norm).",
        **_each("data DataLoader Dataset", "Write gg.training.batches(arrays, size, seed=0)."),
        "tqdm": "Write gg.training.progress(steps).",
        "while": "Write gg.while_loop.",
        **_each("custom_root custom_linear_solve", "Write gg.rules.root, gg.rules.linear_solve."),
        **_each("Print print", "Write gg.debug.print."),
        **_each("py_func numpy_function pure_callback io_callback frompyfunc", CALLBACKS),
        **_each("draw plot visualize visualise show make_dot plot_model draw_graph", PICTURES),
        **_each("load_onnx to_onnx from_onnx", ONNX),
        **_each("jax", "Write gg.interop.from_jax, open_jax or to_jax; backend='jax' runs on JAX."),
        **_each("torch", "Write gg.interop.from_torch, open_torch or to_torch."),
        **_each("tf tensorflow compat contrib estimator", "Write `import graphgrad.tf1 as tf`."),
        **_each(
            "saved_model hub", "Write gg.save(path, graph), or gg.onnx.export(function, path)."
        ),
        **_each("conv conv1d conv2d conv3d conv_general_dilated", CONV),
        **_each(
            "conv_transpose1d conv_transpose2d conv2d_transpose", "Write gg.nn.conv_transpose."
        ),
        **_each("max_pool1d max_pool2d avg_pool1d avg_pool2d reduce_window", POOL),
        **_each("depthwise_conv2d separable_conv2d", "Write gg.nn.conv(x, filters, groups=...)."),
        "adaptive_avg_pool2d": "Write gg.nn.adaptive_avg_pool(x, output_size).",
        "multi_head_attention_forward": "Write gg.nn.dot_product_attention.",
        "hardtanh": "Write gg.nn.hard_tanh.",
        "hardsigmoid": "Write gg.nn.hard_sigmoid.",
        "logsigmoid": "Write gg.nn.log_sigmoid.",
        "l2_normalize": "Write gg.nn.normalize(t, axis).",
        "bias_add": "Write t + bias.",
        "local_response_normalization": "Write gg.nn.local_response_norm.",
        "moments": "Write gg.mean(t, axis), gg.var(t, axis).",
        "sigmoid_cross_entropy_with_logits": "Write gg.nn.binary_cross_entropy_with_logits.",
        **_each(
            "softmax_cross_entropy_with_logits sparse_softmax_cross_entropy_with_logits",
            "Write gg.nn.cross_entropy.",
        ),
        **_each("space_to_depth batch_to_space", "Write gg.nn.pixel_unshuffle(x, factor)."),
        "depth_to_space": "Write gg.nn.pixel_shuffle(x, factor).",
        "extract_image_patches": "Write gg.nn.unfold(x, window).",
        "image": IMAGES,
        **_each("mm bmm baddbmm addmm batch_matmul dot_general mv", MATMUL),
        **_each("lgamma", "Write gg.special.gammaln."),
        **_each("igamma igammac", "Write gg.special.gammainc, gg.special.gammaincc."),
        **_each("erf_inv", "Write gg.special.erfinv."),
        **_each("mvlgamma", "Write gg.special.multigammaln."),
        **_each("adam Adam AdamW adamw sgd SGD rmsprop adagrad momentum Optimizer", TRAINING),
        **_each("lion lbfgs apply_updates chain scale_by_adam", TRAINING),
        "lr_scheduler": SCHEDULES,
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
        **_each("copyto masked_scatter scatter_reduce", PUT),
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
        **_each("GradReverse grad_reverse", "Write gg.rules.reverse()."),
        "guided_backprop": GUIDED,
        "lrp": LRP,
        **_each("register_hook register_backward_hook hook", HOOKS),
        **_each("saliency Saliency captum shap gradcam GradCAM", ATTRIBUTION),
        **_each("integrated_gradients IntegratedGradients", ATTRIBUTION),
        **_each("gradcheck gradgradcheck check_grads numerical_gradient", CHECKS),
        **_each("custom_function", RULES),
        **_each("vectorized_map batch", "Write gg.vmap(fn)."),
        **_each("linearize", "Write gg.jvp(ys, xs, tangents)."),
        "vhp": "Write gg.hvp(y, xs, vs).",
        **_each("make_jaxpr symbolic_trace as_text", "Write gg.graph_text(tensors)."),
        **_each("eval_shape ShapeDtypeStruct TensorSpec TensorShape", "Write t.shape and t.dtype."),
        **_each("tensorboard SummaryWriter", "Write gg.write_tensorboard(folder, tensors)."),
        **_each(
            "profiler profile timeit benchmark", "Write gg.compile(inputs, outputs).profile(...)."
        ),
        **_each("double half float int long bool_ dtype issubdtype", DTYPES),
        **_each("is_floating_point set_default_dtype get_default_dtype common_type", DTYPES),
        **_each("convert_element_type to_float", "Write t.astype(dtype)."),
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
            "debug_nans set_detect_anomaly detect_anomaly check_numerics",
            "Write gg.debug.blame(loss, xs, feeds).",
        ),
        **_each("device_put set_default_device", NO_DEVICE),
        **_each(
            "tree_map tree tree_util pytree", "Functions take and return nested lists and dicts."
        ),
        **_each(
            "lax numpy scipy functional func math math_ops experimental",
            "Their functions are gg's own: gg.sum, gg.special.erf.",
        ),
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
        **_each(
            "errstate seterr config core", "Write gg.debug.nan_guard; NumPy's settings are NumPy's."
        ),
        **_each("nditer ndenumerate ndindex", LOOPS),
        **_each("savez savetxt loadtxt genfromtxt fromfile frombuffer", FILES),
        **_each("matrix asmatrix bmat", "Write gg.array(value): matrices are tensors of rank 2."),
        "ma": "Write gg.where(mask, x, fill).",
        **_each("sparse ragged RaggedTensor SparseTensor IndexedSlices sparse_coo_tensor", DENSE),
        **_each(
            "TensorDataset metrics utils multiprocessing",
            "Write gg.training.batches(arrays, size).",
        ),
        **_each("quantize quantization", "Write gg.rules.fake_quantise(...), gg.rules.lsq."),
        "signal": "Write gg.fft, gg.convolve or gg.correlate.",
        "strings": "Tensors hold numbers and bools: encode strings before they are fed.",
        **_each(
            "closure_convert ensure_compile_time_eval",
            "Write it in Python: it runs while the graph is built.",
        ),
    },
    "graphgrad.rules": {
        **_each("STE StraightThrough straight_through identity round", "Write gg.rules.ste()."),
        **_each("binarize Sign", "Write gg.rules.sign_ste(), or gg.rules.ste()."),
        **_each("hardtanh", "Write gg.rules.clamp_ste()."),
        **_each("reinforce REINFORCE", "Write gg.rules.score_function."),
        **_each("vq vector_quantize VectorQuantize", "Write gg.rules.vq_st(x, codebook)."),
        **_each("noise add_noise", "Write gg.rules.gradient_noise."),
        **_each("blackbox", "Write gg.rules.black_box(...), or gg.rules.spsa."),
        **_each("smoothgrad integrated_gradients gradcam", ATTRIBUTION),
        **_each("double_where safe_where", "Write gg.rules.nan_guard(), or gg.heal(ys)."),
        **_each("feedback_alignment", "Write gg.rules.feedback(...)."),
        **_each(
            "gradient_reversal GradientReversal grad_reverse GradReverse reversal",
            "Write gg.rules.reverse().",
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
            "check_nans check_numerics enable_check_numerics detect_anomaly debug_nans checkify",
            "Write gg.debug.blame, or gg.debug.nan_guard(t).",
        ),
        **_each("Print callback", "Write gg.debug.print(t)."),
        **_each("gradcheck", CHECKS),
        **_each("profile", "Write gg.compile(inputs, outputs).profile(...)."),
        **_each(
            "visualize_array_sharding inspect_array_sharding", "Write print(f) of a compiled f."
        ),
        **_each(
            "breakpoint set_trace", "Write gg.debug.values(fetches, feeds): every node's value."
        ),
        **_each("diff", "Write gg.debug.compare(a, b, feeds), or gg.graph_diff."),
    },
    "graphgrad.training": {
        **_each(
            "Trainer fit train TrainState MonitoredTrainingSession Supervisor epochs", TRAINING
        ),
        **_each("EarlyStopping callbacks", "Write the loop over gg.training.batches in Python."),
        **_each("metrics evaluate validate", "Write gg.evaluate, or gg.compile(inputs, metric)."),
        **_each("train_test_split", "Slice the arrays with NumPy."),
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
        **_each("truncated_normal trunc_normal_", "Write gg.random.truncated_normal(shape)."),
        **_each("normal_ RandomNormal", "Write gg.initializers.normal."),
        **_each("uniform_ RandomUniform", "Write gg.initializers.uniform."),
        **_each("zeros_ Zeros", "Write gg.initializers.zeros."),
        **_each("ones_ Ones", "Write gg.initializers.ones."),
        **_each("orthogonal_ Orthogonal delta_orthogonal", "Write gg.initializers.orthogonal."),
        "GlorotUniform": "Write gg.initializers.glorot_uniform.",
        "HeNormal": "Write gg.initializers.he_normal.",
        **_each("eye_ dirac_ identity Identity", "Write gg.variable(numpy.eye(n))."),
        **_each("constant_ Constant sparse_", "Write gg.variable(array) with a NumPy array."),
        "calculate_gain": "Write scale * gg.initializers.he_normal(shape).",
        "constant": "Write gg.variable(numpy.full(shape, value)).",
    },
    "graphgrad.special": {
        "lgamma": "Write gg.special.gammaln.",
        "erf_inv": "Write gg.special.erfinv.",
        "psi": "Write gg.special.digamma.",
        "bessel_j0": "Write gg.special.j0.",
        "bessel_i0": "Write gg.special.i0.",
        "sph_harm": "Write gg.special.sph_harm_y.",
        "expint": "Write gg.special.expi, gg.special.exp1 or gg.special.expn.",
        "round": "Write gg.round(t).",
        **_each("airy_ai lambertw ellipk spherical_bessel_j0", CALLBACKS),
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
        **_each("band_part matrix_band_part", "Write gg.tril and gg.triu."),
        **_each("adjoint", "Write gg.conj(t.mT)."),
        **_each("set_diag", "Write gg.where(gg.eye(n, dtype='bool'), diagonal, t)."),
        **_each("diag_part", "Write gg.linalg.diagonal."),
        **_each("global_norm", "Write gg.optimizers.clip_by_global_norm."),
        **_each("toeplitz hankel", "Write t[i] with a matrix of indices i."),
        **_each("ldl ldl_factor", "Write gg.linalg.cholesky, or gg.linalg.lu."),
        **_each("schur polar", "Write gg.linalg.eigh, or gg.linalg.svd."),
        **_each("householder_product", "Write gg.linalg.qr."),
    },
    "graphgrad.fft": {
        **_each("rfft3 fft3 rfft3d fft3d", "Write gg.fft.fftn, gg.fft.rfftn."),
        **_each("stft istft", "Write gg.fft.rfft of frames t[:, i], with a matrix of indices i."),
        **_each("dct", "Write it by gg.fft.rfft of the array and its mirror."),
        **_each("fft2d rfft2d", "Write gg.fft.fft2, gg.fft.rfft2."),
    },
    "graphgrad.onnx": {
        **_each(
            "load_model from_onnx ModelProto InferenceSession load_from_string import_model", ONNX
        ),
        **_each(
            "checker run",
            "Write model.compile() with a model of gg.onnx.load, and call the result.",
        ),
        **_each(
            "optimize simplify", "gg.compile optimises; gg.onnx.export writes the graph as it is."
        ),
        **_each("quantize", "Write gg.onnx.export(function, path, quantised='qdq')."),
        **_each("helper convert", ONNX),
        **_each("save save_model to_onnx dump", "Write gg.onnx.export(function, path)."),
        **_each("gradients grad", "Write gg.onnx.differentiate(model, of, wrt)."),
    },
    "graphgrad.interop": {
        **_each(
            "jax2tf call_tf from_tensorflow from_keras tensorflow",
            "Write gg.tf1 for TensorFlow's graphs.",
        ),
        **_each("from_onnx to_onnx", ONNX),
        **_each(
            "from_flax from_equinox from_haiku trace", "Write gg.interop.open_jax(fn, *tensors)."
        ),
        **_each("from_module torch", "Write gg.interop.open_torch(module, *tensors)."),
        "jax": "Write gg.interop.open_jax(fn, *tensors), or gg.interop.from_jax.",
        **_each("dlpack to_dlpack", "Write gg.from_dlpack(array); results are NumPy arrays."),
        **_each("convert onnx2torch", "Write gg.interop.to_torch(f), or gg.onnx.export."),
    },
    "Graph": {
        **_each("draw plot show visualize render view", PICTURES),
        **_each("as_graph_def SerializeToString to_json serialize", "Write gg.save(path, graph)."),
        **_each("get_operations operations", "Write graph.nodes."),
        **_each("get_tensor_by_name", "Write graph.tensor(name)."),
        **_each("get_operation_by_name", "Write graph.node(name)."),
        **_each("gradients backward", "Write gg.gradients(ys, xs)."),
        **_each("run eval compile", RUN),
        **_each("outputs graph", "A graph has no outputs: gg.compile takes tensors of it."),
        **_each("version", "Write gg.__version__; files have their own."),
        **_each("name_scope", "Write `with graph, gg.name_scope(name):`."),
        **_each(
            "placeholders inputs parameters",
            "Write [n for n in graph.nodes if n.type == 'Placeholder'].",
        ),
        **_each("get_collection add_to_collection collections", VARIABLES),
        **_each("control_dependencies", DEPENDENCIES),
        **_each(
            "finalize eliminate_dead_code recompile", "gg.compile takes what its outputs need."
        ),
        **_each("print print_tabular code", "Write gg.print_graph(graph)."),
        "lint": "Write gg.lint(graph).",
        "device": NO_DEVICE,
        "clone": "Write graph.copy().",
        "save": "Write gg.save(path, graph).",
        "to_onnx": "Write gg.onnx.export(function, path).",
        "state_dict": STATES,
        "unique_name": "Names are made unique: pass name= as it is.",
        "override_gradient": "Write `with gg.override_gradient(rule):`, or graph.mark.",
    },
    "graphgrad.nn": {
        **_each("Module Sequential Linear Conv2d Dropout BatchNorm2d ReLU ModuleList", NO_LAYERS),
        **_each("Flatten Identity Sigmoid Tanh Softmax MaxPool2d AvgPool2d", NO_LAYERS),
        **_each("AdaptiveAvgPool2d Transformer TransformerEncoderLayer RMSNorm", NO_LAYERS),
        **_each("GroupNorm InstanceNorm2d Upsample PixelShuffle", NO_LAYERS),
        **_each("init", "Initial values are in gg.initializers."),
        **_each("utils clip_grad_norm_", "Write gg.optimizers.clip_by_global_norm(grads, norm)."),
        **_each("parallel DataParallel", SHARDS),
        **_each("rnn_cell dynamic_rnn static_rnn", CELLS),
        **_each("embedding_lookup", "Write gg.nn.embedding(indices, table)."),
        **_each("bias_add", "Write t + bias."),
        **_each("l2_loss", "Write gg.sum(t * t) / 2."),
        **_each("l2_normalize", "Write gg.nn.normalize(t, axis)."),
        **_each("moments weighted_moments", "Write gg.mean(t, axis), gg.var(t, axis)."),
        **_each("in_top_k", "Write gg.any(gg.topk(t, k)[1] == labels[:, None], -1)."),
        **_each("crelu", "Write gg.nn.relu(gg.concat([t, -t], -1))."),
        **_each("depthwise_conv2d separable_conv2d", "Write gg.nn.conv(x, filters, groups=...)."),
        **_each("atrous_conv2d", "Write gg.nn.conv(x, filters, dilation=...)."),
        **_each("conv2d_transpose", "Write gg.nn.conv_transpose."),
        **_each("local_response_normalization", "Write gg.nn.local_response_norm."),
        **_each("nce_loss sampled_softmax_loss compute_accidental_hits", LOSSES),
        **_each("Parameter", VARIABLE),
        **_each("functional", "The functions are in gg.nn itself: gg.nn.relu, gg.nn.conv."),
        **_each("conv1d conv2d conv3d convolution", CONV),
        **_each(
            "sigmoid_cross_entropy sigmoid_cross_entropy_with_logits BCEWithLogitsLoss BCELoss",
            "Write gg.nn.binary_cross_entropy_with_logits.",
        ),
        **_each(
            "softmax_cross_entropy softmax_cross_entropy_with_logits CrossEntropyLoss "
            "sparse_softmax_cross_entropy_with_logits",
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
        **_each("LSTM GRU RNN lstm", CELLS),
        **_each("Embedding", "Write gg.nn.embedding."),
        **_each("LayerNorm", "Write gg.nn.layer_norm."),
        **_each("pad", "Write gg.pad."),
        "erf": "Write gg.special.erf.",
        "tanh": "Write gg.tanh.",
    },
    "graphgrad.optimizers": {
        **_each(
            "Adadelta Adamax LBFGS Lion Nadam Ftrl lamb adafactor lookahead sam scale_by_adam ema",
            "Write a subclass of gg.optimizers.Optimizer.",
        ),
        **_each("GradientTransformation multi_transform", "Write an optimiser for each group."),
        **_each("apply_if_finite", "Write gg.rules.skip_not_finite."),
        **_each("clip_grad_value_", LIMITED),
        **_each("add_noise", "Write gg.rules.gradient_noise."),
        **_each("global_norm", "clip_by_global_norm returns the norm too."),
        **_each("piecewise_constant_schedule StepLR", "Write gg.optimizers.piecewise_constant."),
        **_each(
            "warmup_cosine_decay_schedule",
            "Write gg.optimizers.warmup, gg.optimizers.cosine_decay.",
        ),
        **_each("ExponentialLR", "Write gg.optimizers.exponential_decay."),
        **_each("ReduceLROnPlateau", "Pass a placeholder as learning_rate=, and feed it."),
        **_each("GradientDescentOptimizer MomentumOptimizer", "Write gg.optimizers.SGD."),
        **_each("sgd Momentum momentum Nesterov", "Write gg.optimizers.SGD(rate, momentum=0.9)."),
        **_each("adam", "Write gg.optimizers.Adam."),
        **_each("adamw", "Write gg.optimizers.AdamW."),
        **_each("adagrad Adagrad", "Write gg.optimizers.AdaGrad."),
        **_each("rmsprop RMSprop", "Write gg.optimizers.RMSProp."),
        **_each(
            "apply_updates chain", "Write optimizer.minimize(loss), or updates(params, grads)."
        ),
        **_each(
            "cosine_schedule cosine_annealing cosine_decay_schedule CosineAnnealingLR",
            "Write gg.optimizers.cosine_decay.",
        ),
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
        **_each("PRNGKey key Generator wrap_key_data key_data", KEYS),
        **_each("get_state set_state stateless_normal stateless_uniform", KEYS),
        **_each("t standard_t", "Write gg.random.student_t."),
        **_each("negative_binomial", "Write gg.random.poisson of gg.random.gamma."),
        **_each("hypergeometric logseries vonmises zipf", CALLBACKS),
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
        **_each("float double long half int bool type_as", "Write t.astype(dtype)."),
        **_each("view view_as reshape_as unflatten expand expand_as", SHAPES),
        **_each("get_shape set_shape", SHAPES),
        **_each("dim rank", "Write t.ndim."),
        "split": "Write gg.split(t, sections, axis).",
        "topk": "Write gg.topk(t, k).",
        "roll": "Write gg.roll(t, shift, axis).",
        "outer": "Write gg.outer(t, other).",
        "searchsorted": "Write gg.searchsorted(t, values).",
        "choose": "Write gg.choose(t, choices).",
        "compress": "Write gg.compress(condition, t).",
        **_each("numel nelement", "Write t.size."),
        **_each("unsqueeze", "Write gg.expand_dims(t, axis)."),
        **_each("permute", "Write t.transpose(axes)."),
        **_each("clone contiguous copy", "A tensor never changes: use it as it is."),
        **_each(
            "add_ sub_ mul_ div_ zero_ copy_ fill_ clamp_ masked_fill_ sigmoid_ tanh_", IN_PLACE
        ),
        **_each("relu_ exp_ sqrt_ log_ apply_ map_ normal_ uniform_ random_", IN_PLACE),
        **_each("nbytes itemsize strides flags base ctypes storage data_ptr stride layout", MEMORY),
        **_each("element_size byteswap is_cuda share_memory_ pin_memory sharding", MEMORY),
        **_each("copy_to_host_async addressable_data as_numpy", VALUE),
        **_each("initializer initialized_value", NO_START),
        **_each("read_value", "A variable is its value: use it in the graph."),
        "load": "Write state.load({name: array}), with a gg.State.",
        "trainable": "Write gg.variable(initial, trainable=False).",
        "consumers": "Write the readers as [n for n in graph.nodes if t in n.inputs].",
        **_each(
            "new new_zeros new_ones new_full new_tensor", "Write gg.zeros(shape), gg.full, ..."
        ),
        **_each("t H", "Write t.T, or t.mT; gg.conj of it for H."),
        **_each("movedim", "Write gg.moveaxis(t, source, destination)."),
        **_each("masked_select", "Write t[mask]."),
        **_each("gather", "Write gg.take_along_axis(t, indices, axis)."),
        **_each("index_select", "Write gg.take(t, indices, axis)."),
        **_each("chunk", "Write gg.split(t, sections, axis)."),
        **_each("unbind", "Write gg.unstack(t, axis)."),
        **_each("select", "Write t[index], or gg.take(t, index, axis)."),
        **_each("pow", "Write t ** p."),
        **_each("add sub mul div neg", "Write a + b, a - b, a * b, a / b, -a."),
        **_each("rsqrt", "Write 1 / gg.sqrt(t)."),
        **_each("frac", "Write t - gg.trunc(t)."),
        **_each("lerp", "Write a + t * (b - a)."),
        **_each("erf", "Write gg.special.erf(t)."),
        **_each("lgamma", "Write gg.special.gammaln(t)."),
        **_each("digamma", "Write gg.special.digamma(t)."),
        **_each("inverse", "Write gg.linalg.inv(t)."),
        **{name: f"Write gg.linalg.{name}(t)." for name in ("det", "svd")},
        **{name: f"Write gg.random.{name}(t)." for name in ("bernoulli", "multinomial")},
        "masked_fill": "Write gg.where(mask, value, t).",
        "clamp": "Write gg.clip(t, low, high).",
        **_each("assign assign_add assign_sub", "Write gg.assign(variable, value)."),
        **_each("at", "Write gg.at(t)[index].set(value)."),
        **_called("abs exp log sqrt square sin cos tan tanh matmul sign floor ceil isnan isinf"),
        **_called("isfinite trunc reciprocal logsumexp flip triu tril diag unique"),
        **_called("ptp argwhere count_nonzero bincount"),
        **{
            name: f"Write gg.nn.{name}(t)."
            for name in ("relu", "softmax", "log_softmax", "sigmoid")
        },
        "norm": "Write gg.linalg.norm(t).",
        **_each("save", "Write gg.save(path, graph), or gg.Checkpoints(folder)."),
        **_each("draw plot show", PICTURES),
        **_each("mm bmm addmm baddbmm", MATMUL),
        **_each("narrow", SLICES),
        **_each("scatter scatter_ scatter_add scatter_add_ index_add index_add_ index_fill_", PUT),
        **_each("eq ne lt le gt ge", "Write a == b, a < b, ...: gg.equal, gg.less, ..."),
        **_each("block_until_ready", LOADED),
    },
    "Optimizer": {
        **_each("step", "Fetch what minimize(loss) returns, or give compile `updates`."),
        **_each("zero_grad", "Gradients are not added up: gg.gradients makes new nodes."),
        **_each("apply_gradients apply", "Write minimize(loss), or updates(params, grads)."),
        **_each("compute_gradients", "Write gg.gradients(loss, params)."),
        **_each("param_groups add_param_group", "Write an optimiser for each group of variables."),
        **_each("state_dict load_state_dict get_slot variables init iterations", STATES),
        **_each("lr get_config", "Write optimizer.learning_rate."),
    },
    "CompiledFunction": {
        **_each("run eval forward numpy", "Call it: f(array)."),
        **_each("lower compile trace jaxpr as_text structured_outputs", WRITTEN),
        **_each("get_concrete_function graph", WRITTEN),
        **_each("cost_analysis summary", "Write gg.summary(tensors), or f.profile(...)."),
        **_each("memory_analysis", "Write f.peak_bytes."),
        **_each("parameters named_parameters state_dict", STATES),
        **_each("zero_grad", "Gradients are not added up: gg.gradients makes new nodes."),
        **_each("train", "Pass training=, or build a graph for each mode."),
        **_each("to cuda half double", NO_DEVICE + " Build the graph with that dtype."),
        **_each("save", "Write gg.save(path, graph, functions={name: f})."),
        **_each("clear_cache", "Write f.release()."),
        **_each("backward grad", "Compile gg.gradients(y, x) as one of its outputs."),
    },
    "Session": {
        **_each("partial_run make_callable", "Write gg.compile(inputs, outputs)."),
        **_each("eval", "Write session.run(fetches, feeds)."),
        **_each("as_default", "Write session.run(fetches, feeds): there is no default session."),
        **_each("save restore", STATES),
        **_each("reset", "Write session.state.reset()."),
        **_each("list_devices sess_str", NO_DEVICE),
        **_each("global_variables", VARIABLES),
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
