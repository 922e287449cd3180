"""The zoo's recorded cases by the names and parameters of gg.rules: no formula stands here.

A build takes (tensors, parameters, case) and returns y or several, whose gradients `run` takes, or
Given(ys, grads) where the rule is asked for an answer.
"""

import os
from contextlib import nullcontext
from inspect import signature

import numpy as np

import graphgrad as gg

R = gg.rules


class Given:
    """Outputs, and what was given for the inputs."""

    def __init__(self, ys, grads):
        self.ys, self.grads = ys, grads


def build_of(case):
    """How gg.rules has a case, by the name of its family or of its rule alone."""
    name = case["id"].rpartition("/")[0]
    return case.get("build") or RULES.get(name) or RULES.get(case["rule"])


def inputs_of(case):
    """Placeholders by name."""
    return {n: gg.placeholder(a.shape, a.dtype, name=n) for n, a in case["inputs"].items()}


def answered(made, t, case):
    """The outputs, and the gradients of the inputs by name, of what a build made of these."""
    if isinstance(made, Given):
        return made.ys, made.grads
    ys = list(made) if isinstance(made, list | tuple) else [made]
    names = list(case["grads"])
    seeds = [gg.constant(d, dtype=y.dtype) for d, y in zip(case["dy"], ys, strict=True)]
    found = gg.gradients(ys, [t[n] for n in names], seeds, unconnected="zero")
    return ys, dict(zip(names, found, strict=True))


def graph_of(build, case):
    """The inputs, outputs and gradients of a case, in the current graph."""
    t = inputs_of(case)
    return t, *answered(build(t, case["params"], case), t, case)


def run(build, case):
    """(ys, {name: gradient}) of a case."""
    with gg.Graph():
        t, ys, grads = graph_of(build, case)
        backend = os.environ.get("GG_BACKEND", "numpy")
        f = gg.compile(list(t.values()), [list(ys), grads], backend=backend)
        return f(*case["inputs"].values())


RENAMES = {"standardize": "standardised", "grad_scale": "scale", "grad_width": "width"}
RENAMES |= {"B": "band", "sync": "nu", "T_period": "period", "t_period": "period"}


def named(rule, p, **renames):
    """Parameters by our names: {"T_period": "period"}; what a rule has no name for is left out."""
    names, known = RENAMES | renames, signature(getattr(R, rule)).parameters
    return {names.get(k, k): v for k, v in p.items() if names.get(k, k) in known}


def on(rule, f, fixed=(), **renames):
    """A rule, by its name, on a function of x."""

    def build(t, p, case):
        with gg.override_gradient(getattr(R, rule)(**named(rule, p, **renames), **dict(fixed))):
            return f(next(iter(t.values())))

    return build


def on_each(rule):
    """A rule on each tensor."""
    alone = on(rule, gg.identity)
    return lambda t, p, case: [alone({"x": x}, p, case) for x in t.values()]


def step(rule, fixed=(), **renames):
    """A rule on a spike, whose value at the threshold is that of the package."""

    def build(t, p, case):
        threshold = case["params"].get("threshold", 0.0) if "sinabs" in case["what"] else 0.0
        at = case["inputs"]["x"] == threshold
        above = 1.0 if at.any() and case["y"][0][at].max() > 0 else 0.0
        given = {**named(rule, p, **renames), **dict(fixed)}
        over = t["x"] - threshold if threshold and "threshold" not in given else t["x"]
        with gg.override_gradient(getattr(R, rule)(**given)):
            return gg.heaviside(over, above)

    return build


def integers(**fixed):
    """int_quant with the range of so many bits."""

    def build(t, p, case):
        low, high = R.integer_range(**p)
        return R.int_quant(*t.values(), low=low, high=high, **fixed)

    return build


def made(rule, fixed=(), **renames):
    """A row that builds, its tensors in the order of the case."""

    def build(t, p, case):
        given = {**named(rule, p, **renames), **dict(fixed)}
        return getattr(R, rule)(*t.values(), **given)

    return build


def vertices(p):
    """The best of listed vertices, as a function of costs."""
    corners = np.array(p["vertices"])
    best = gg.argmin if p["sense"] == "argmin" else gg.argmax
    return lambda c: gg.take(gg.constant(corners), best(c @ gg.constant(corners.T), -1), axis=0)


def ridge(lam, a, b):
    """The minimum of a quadratic."""
    a, b, n = gg.constant(a), gg.constant(b), len(b)
    right = gg.matvec(gg.transpose(a), b) / n
    return R.linear_solve(
        lambda w: gg.matvec(gg.transpose(a), gg.matvec(a, w)) / n + lam * w, right
    )


def dense(rule, x, w, b):
    """A rule on a dense layer."""
    w = gg.transpose(w)
    with gg.override_gradient(rule, inputs=[x, w, *([] if b is None else [b])]):
        return x @ w if b is None else x @ w + b


def convolved(t, p):
    """Feedback alignment on a convolution."""
    x = gg.transpose(t["x"], (0, 2, 3, 1))
    w, back = [gg.transpose(t[n], (2, 3, 1, 0)) for n in ("w", "feedback")]
    edge = p["padding"]
    x = gg.pad(x, ((0, 0), (edge, edge), (edge, edge), (0, 0)))
    with gg.override_gradient(R.feedback(back), inputs=[x, w]):
        y = gg.nn.conv(x, w, padding="VALID")
    return gg.transpose(y, (0, 3, 1, 2))


def plain(f):
    """A function of gg, with its own gradient."""
    return lambda t, p, case: f(*t.values())


def masked(x, f):
    """A function, where x > 0."""
    with gg.override_gradient(R.masked(f, lambda x: x > 0)):
        return gg.where(x > 0, f(x), 0.0)


def of_examples(rule):
    """A row of parameters for each example: what is shared is handed out."""

    def build(t, p, case):
        batched = [gg.broadcast_to(x, d.shape) for x, d in zip(t.values(), case["dy"], strict=True)]
        return getattr(R, rule)(*batched, **p)

    return build


def fanned(rule):
    """A row that hands x out: to as many tasks as there are gradients."""

    def build(t, p, case):
        drawn = {n: v for n, v in t.items() if n != "x"}
        return getattr(R, rule)(t["x"], len(case["dy"]), **p, **drawn)

    return build


def on_two(rule, f):
    """A rule on a function of two tensors."""

    def build(t, p, case):
        with gg.override_gradient(getattr(R, rule)(**p), inputs=list(t.values())):
            return f(*t.values())

    return build


def layer(rule):
    """A relevance rule on a layer; the rules know convolutions with channels last."""

    def build(t, p, case):
        x, w, b = t["x"], t["w"], t.get("b")
        conv = p["layer"] == "conv2d"
        if conv:
            x, w = gg.transpose(x, (0, 2, 3, 1)), gg.transpose(w, (2, 3, 1, 0))
        else:
            w = gg.transpose(w)
        with gg.override_gradient(getattr(R, rule)(**named(rule, p))):
            y = gg.nn.conv(x, w, padding="VALID") if conv else x @ w
            y = y if b is None else y + b
        return gg.transpose(y, (0, 3, 1, 2)) if conv else y

    return build


def net(t, p, x=None, rule=None):
    """The recorded network; rule: for each layer with its bias."""
    x = t["x"] if x is None else x
    act = {"relu": gg.nn.relu, "sigmoid": gg.nn.sigmoid, "tanh": gg.tanh}[p["activation"]]

    def marked():
        return gg.override_gradient(rule()) if rule else nullcontext()

    h, count = x, sum(n.endswith("_weight") for n in t)
    for i in range(count):
        w, b = t[f"l{i}_weight"], t[f"l{i}_bias"]
        if w.ndim == 4:
            last, w = gg.transpose(h, (0, 2, 3, 1)), gg.transpose(w, (2, 3, 1, 0))
            with marked():
                h = gg.nn.conv(last, w, padding="VALID") + b
            h = gg.reshape(gg.transpose(act(h), (0, 3, 1, 2)), (x.shape[0], -1))
            continue
        w = gg.transpose(w)
        with marked():
            h = h @ w + b
        h = act(h) if i < count - 1 else h
    return h


def gradient_of_net(rule):
    """The gradient with a rule on each ReLU."""

    def build(t, p, case):
        y = net(t, p)
        rules = {"Relu": getattr(R, rule)()}
        return Given(
            [y], {"x": gg.gradients(y, t["x"], gg.constant(case["dy"][0]), overrides=rules)}
        )

    return build


def relevance_of_net(rule, **fixed):
    """Relevance with a rule on each layer."""

    def build(t, p, case):
        given = {k: v for k, v in p.items() if k in ("epsilon", "gamma", "low", "high")}
        y = net(t, p, rule=lambda: getattr(R, rule)(**{**fixed, **given}))
        dy = gg.constant(case["dy"][0])
        dy = y * dy if "captum" in case["what"] else dy
        return Given([y], {"x": gg.gradients(y, t["x"], dy, overrides={"Relu": R.lrp_pass()})})

    return build


def contributions(t, p, case):
    """deeplift of what the gradient that arrives weights."""
    seed = gg.constant(case["dy"][0])
    score = lambda x: gg.sum(net(t, p, x) * seed, axis=-1)  # noqa: E731
    return Given([net(t, p)], {"x": R.deeplift(score, t["x"], t["reference"])})


def shap(t, p):
    """deep_shap of one output."""
    score = lambda x: net(t, p, x)[:, p["output"]]  # noqa: E731
    return Given([net(t, p)], {"x": R.deep_shap(score, t["x"], t["references"])})


RULES = {
    # spikes
    "spike_ste": step("ste"),
    "sigmoid_overflow": step("sigmoid"),
    "spike_rate_escape": step("rate_escape"),
    "sparse_fast_sigmoid": step("sparse_fast_sigmoid", {"side": "above"}),
    "leaky_spike": step("leaky_step", {"at_zero": "leak"}, slope="leak"),
    "piecewise_quadratic": lambda t, p, c: step("triangle")(
        t, {"width": 1 / p["alpha"], "height": p["alpha"]}, c
    ),
    "piecewise_exp": lambda t, p, c: step("exponential")(
        t, {"width": 1 / p["alpha"], "height": p["alpha"] / 2}, c
    ),
    "soft_sign": step("softsign"),
    "nonzero_sign_log_abs": step("log_step"),
    "piecewise_leaky_relu": step("piecewise_leaky"),
    "squarewave_fourier": lambda t, p, c: step("squarewave")(
        t, {"n": p["n"] - 1, "period": p["T_period"]}, c
    ),
    "leaky_k_relu": step("leaky_step"),
    "log_tailed_relu": step("log_tailed"),
    "single_exponential": lambda t, p, c: step("exponential")(
        t, {"width": p["grad_width"], "height": p["grad_scale"] / p["grad_width"]}, c
    ),
    "heaviside_window": step("heaviside_window", threshold="left out"),
    "periodic_exponential": on(
        "periodic_exponential", lambda x: gg.heaviside(x - 1.0, 1.0), {"above": 0.5}
    ),
    "multi_spike_periodic": made("multi_spike", {"above": 0.5}),
    "super_spike_norse": step("super_spike", alpha="left out"),
    "heavi_erfc": step("erfc_step", alpha="k"),
    "heavi_tanh": step("tanh_step", alpha="k"),
    "heavi_circ": step("circ_step"),
    "triangle_norse": step("triangle", alpha="height"),
    "sigmoid_bt": step("sigmoid", alpha="slope"),
    "piecewise_quadratic_bt": lambda *a: RULES["piecewise_quadratic"](*a),
    "piecewise_exp_bt": lambda *a: RULES["piecewise_exp"](*a),
    "soft_sign_bt": step("softsign"),
    "atan_bt": step("atan"),
    "log_step_bt": step("log_step"),
    "erf_bt": step("erf"),
    "piecewise_leaky_bt": step("piecewise_leaky", {"edges": "inside"}),
    "squarewave_bt": step("squarewave"),
    "s2nn_bt": step("s2nn"),
    "q_pseudo_spike_bt": step("q_pseudo_spike", {"shift": 1.0}),
    "leaky_step_bt": step("leaky_step", alpha="leak", beta="k"),
    "log_tailed_bt": step("log_tailed"),
    "relu_grad_bt": step("relu_grad"),
    "gaussian_bt": step("gaussian", alpha="scale"),
    "multi_gaussian_bt": step("multi_gaussian"),
    "inv_square_bt": step("fast_sigmoid", alpha="slope"),
    "slayer_bt": lambda t, p, c: step("exponential")(t, {"width": 1 / p["alpha"]}, c),
    # signs, few levels
    "ste_sign": made("sign_ste"),
    "binary_sign_ste": made("sign_ste"),
    "ste_heaviside": on("ste", lambda x: gg.heaviside(x, 0.0)),
    "approx_sign": lambda t, p, c: spike_sign(R.triangle(1.0, 2.0))(t),
    "swish_sign": lambda t, p, c: spike_sign(R.swish_sign(p["beta"]))(t),
    "ste_tern": lambda t, p, c: R.ternary(
        t["x"], None if p["adaptive"] else p["threshold"], p["window"]
    ),
    "round_ste": on("ste", gg.rint),
    "ceil_ste": on("ste", gg.ceil),
    "floor_ste": on("ste", gg.floor),
    "round_to_zero_ste": made("to_zero_ste"),
    "ternary_sign_ste": on("ste", gg.sign),
    "abs_binary_sign_grad": on("abs_sign", gg.abs),
    "clamp_min_ste": made("clamp_ste"),
    "clamped_binary_quant": made("binary_quant", {"clamped": True}),
    # grids
    "fake_quantise_scale": lambda t, p, c: R.int_quant(
        t["x"], **p, inside="rounded", zero_is="added"
    ),
    "lsq_plus": made("int_quant", {"inside": "rounded", "zero_is": "rounded"}),
    "lsq_plus_channels": made("int_quant", {"inside": "rounded", "zero_is": "rounded"}),
    "lsq": made("lsq", {"inside": "rounded"}),
    "int_quant": integers(inside="rounded"),
    "int_quant_ste": integers(inside="all"),
    "fake_quantise": made("fake_quantise_tf"),
    "fake_quantise_channels": made("fake_quantise_tf"),
    "quantise_and_dequantise": lambda t, p, c: R.quantise_and_dequantise(
        t["x"], p["low"], p["high"], p["bits"], "even" if "EVEN" in p["round_mode"] else "up"
    ),
    "fake_quantise_groups": made(
        "int_quant", {"inside": "rounded", "zero_is": "added", "axis": -1}
    ),
    "fake_float8_rows": made("fake_float8_rows", {"learns": True, "backward": True}),
    # codes
    "vq_learned": made("vq_st"),
    "vq_sync_loss": made("vq_learned_loss"),
    "residual_vq": made("residual_vq", {"around": False}),
    "latent_quantise": made("latent_quantise", {"axis": 1}),
    # samples
    "score_function": lambda t, p, c: R.score_function(t["x"], t["sample"]),
    # dictionaries
    # soft operators
    "soft/soft_sign": on("soft_sign", gg.sign),
    "soft_heaviside": on("soft_heaviside", lambda x: gg.heaviside(x, 0.5)),
    "soft_abs": on("soft_abs", gg.abs),
    "soft_round": on("soft_round", gg.rint),
    "soft_relu": on("soft_relu", gg.nn.relu),
    # projections
    "sinkhorn": lambda t, p, c: R.sinkhorn(t["x"], p["rows"], p["columns"], p["temperature"]),
    # several gradients
    "jd_constant": lambda t, p, c: R.jd_constant(
        t["x"], len(c["dy"]), weights=np.arange(1.0, 1.0 + len(c["dy"]))
    ),
    # attention
    "attn_add": on_two("attn_add", gg.add),
    "attn_matmul": lambda t, p, c: on_two("attn_matmul", gg.matmul)(
        {"x": t["x"], "y": gg.matrix_transpose(t["y"])}, p, c
    ),
    "attn_multiply": lambda t, p, c: on_two("attn_multiply", gg.multiply)(
        t, {"carries": "both" if "y" in c["grads"] else "first"}, c
    ),
    "attn_mean": lambda t, p, c: on("attn_mean", lambda x: gg.mean(x, p["axis"], keepdims=True))(
        t, p, c
    ),
    "attn_softmax": lambda t, p, c: on(
        "attn_softmax", lambda x: gg.nn.softmax(x / p["temperature"], p["axis"])
    )(t, {**p, "over": -1}, c),
    "deep_shap": lambda t, p, c: shap(t, p),
    # relevance
    **{f"lrp_{of}": layer(f"lrp_{of}") for of in ("epsilon", "alpha_beta", "zplus", "zbox")},
    **{f"lrp_{of}": layer(f"lrp_{of}") for of in ("wsquare", "flat")},
    "lrp_gamma": layer("lrp_signed_gamma"),
    "lrp_norm": on("lrp_epsilon", lambda x: gg.mean(x, -1, keepdims=True)),
    "guided_net": gradient_of_net("guided"),
    "deconvnet_net": gradient_of_net("deconvnet"),
    "composite_guided": gradient_of_net("guided"),
    "composite_deconvnet": gradient_of_net("deconvnet"),
    "deeplift": lambda t, p, c: contributions(t, p, c),
    "relevance_epsilon": relevance_of_net("lrp_epsilon"),
    "relevance_gamma": relevance_of_net("lrp_gamma", epsilon=1e-9, bias=False),
    "relevance_alpha1": relevance_of_net("lrp_zplus", epsilon=1e-9, by_weight=True),
    "composite_epsilon_plus": relevance_of_net("epsilon_plus"),
    "composite_alpha2beta1": relevance_of_net("epsilon_alpha2_beta1"),
    "composite_epsilon_plus_flat": relevance_of_net("epsilon_plus_flat"),
    "composite_alpha2beta1_flat": relevance_of_net("epsilon_alpha2_beta1_flat"),
    "composite_epsilon_gamma_box": relevance_of_net("epsilon_gamma_box", low=-3.0, high=3.0),
    "excitation_backprop": relevance_of_net("lrp_zplus", epsilon=1e-6),
    # stable: functions of gg, but where another value or gradient is wanted at an edge
    "norm_2": lambda t, p, c: on("norm", lambda x: gg.sqrt(gg.sum(x * x, axis=p["axis"])))(t, p, c),
    "norm_1": lambda t, p, c: gg.linalg.vector_norm(t["x"], axis=p["axis"], ord=1),
    "norm_3": lambda t, p, c: gg.linalg.vector_norm(t["x"], axis=p["axis"], ord=3),
    "norm_inf": lambda t, p, c: gg.linalg.vector_norm(t["x"], axis=p["axis"], ord=np.inf),
    "logsumexp": lambda t, p, c: on("logsumexp", lambda x: gg.logsumexp(x, axis=p["axis"]))(
        t, p, c
    ),
    "log_softmax": lambda t, p, c: gg.nn.log_softmax(t["x"], axis=p["axis"]),
    "logcumsumexp": plain(
        lambda x: (
            gg.special.logcumsumexp(x, -1)
            if hasattr(gg.special, "logcumsumexp")
            else gg.cumulative_logsumexp(x, -1)
        )
    ),
    "log1pexp": on("log1pexp", gg.nn.softplus),
    "log_sigmoid": plain(gg.nn.log_sigmoid),
    "bce_logits": lambda t, p, c: gg.nn.binary_cross_entropy_with_logits(
        t["x"], p["target"], reduction="none"
    ),
    "sinc": plain(gg.sinc),
    "abs": plain(gg.abs),
    "stable/xlogy": lambda t, p, c: R.xlogy(
        *t.values(), zero="both" if "torch" in c["what"] else "none", undefined=np.nan
    ),
    "stable_tf/xlogy": made("xlogy"),
    "hypot": made("hypot", {"undefined": np.nan}),
    "stable/atan2": made("arctan2"),
    "stable_tf/atan2": made("arctan2", {"undefined": np.nan}),
    "stable/pow": made("power"),
    "stable_tf/pow": made("power", {"undefined": np.nan}),
    "logaddexp": made("logaddexp", {"undefined": np.nan}),
    "safe_div": made("divide_no_nan"),
    "l2_normalise_max": made("l2_normalise"),
    "l2_normalise": made("l2_normalise", {"of_square": True, "axis": None}),
    "maximum": made("maximum_first"),
    "squared_difference": plain(lambda a, b: gg.square(a - b)),
    "euclidean_norm": plain(lambda x: gg.sqrt(gg.sum(x * x))),
    "prod_zeros": plain(lambda x: gg.prod(x, -1)),
    "cumprod_zeros": plain(lambda x: gg.cumprod(x, -1)),
    "sqrt_at_zero": made("safe_sqrt"),
    "svd_reconstruction": plain(
        lambda x: (lambda r: (r.U * r.S[..., None, :]) @ r.Vh)(gg.linalg.svd(x))
    ),
    "eigh_trace": plain(
        lambda x: (
            lambda r: (
                (r.eigenvectors * r.eigenvalues[..., None, :]) @ gg.matrix_transpose(r.eigenvectors)
            )
        )(gg.linalg.eigh(x))
    ),
    "clip": lambda t, p, c: gg.clip(t["x"], p["low"], p["high"]),
    "slogdet": plain(lambda x: gg.linalg.slogdet(x)[1]),
    "pinv": plain(gg.linalg.pinv),
    "singular_values": plain(lambda x: gg.sum(gg.linalg.svdvals(x))),
    "masked": lambda t, p, c: masked(t["x"], {"log": gg.log, "sqrt": gg.sqrt}[p["f"]]),
    # solvers
    "blackbox": lambda t, p, c: R.interpolated(t["x"], vertices(p), p["lambda"], 1e-7),
    "identity_blackbox": lambda t, p, c: R.identity_solver(t["x"], vertices(p), p["sense"]),
    "spo_plus": lambda t, p, c: R.spo_plus(*t.values(), vertices(p)),
    "perturbed": lambda t, p, c: R.perturbed(
        *t.values(), vertices(p), p["sigma"], baseline="others" if p["baseline"] else "none"
    ),
    "perturbed_times": lambda t, p, c: R.perturbed_times(*t.values(), vertices(p), p["sigma"]),
    "fenchel_young": lambda t, p, c: R.fenchel_young(
        *t.values(), vertices(p), p["sigma"], p["sense"]
    ),
    "imle": lambda t, p, c: R.imle(
        *t.values(), vertices(p), p["sigma"], p["lambda"], p["two_sides"], 1e-7
    ),
    "perturbed_gumbel": lambda t, p, c: R.perturbed(
        *t.values(),
        lambda x: gg.nn.one_hot(gg.argmax(x, -1), x.shape[-1]),
        p["sigma"],
        "gumbel",
        "centre" if p["control_variate"] else "none",
    ),
    "fixed_point": lambda t, p, c: R.fixed_point(
        lambda z: gg.tanh(gg.matvec(t["w"], z) + t["x"]), gg.zeros_like(t["x"])
    ),
    "root_bisection": lambda t, p, c: R.root(lambda z: z**3 + z - t["x"], gg.zeros_like(t["x"])),
    "argmin_ridge": lambda t, p, c: ridge(t["lam"], np.array(p["A"]), np.array(p["b"])),
    # training
    "feedback": lambda t, p, c: dense(R.feedback(t["feedback"]), t["x"], t["w"], t.get("b")),
    "sign_symmetry": lambda t, p, c: dense(R.feedback(t["feedback"]), t["x"], t["w"], t.get("b")),
    "feedback_conv": lambda t, p, c: convolved(t, p),
    # relu
    "guided": on("guided", gg.nn.relu),
    "deconvnet": on("deconvnet", gg.nn.relu),
    "lrp_pass": on("lrp_pass", gg.nn.relu),
    "beta_smooth": on("beta_smooth", gg.nn.relu),
    # clipping
    "clip_value_range": on("clip_range", gg.identity),
    "clip_block_rms": on_each("clip_block_rms"),
    "clip_elements": on_each("clip_value"),
    "zero_nans": on_each("zero_nans"),
    "clip_global_norm_eps": lambda t, p, c: R.clip_global_norm(
        *t.values(), limit=p["limit"], norm=float(p["norm"]), epsilon=1e-6
    ),
    "clip_global_norm_optax": made("clip_global_norm"),
    "per_example_global_norm_clip": of_examples("per_example_global_norm_clip"),
    "per_example_layer_norm_clip": of_examples("per_example_layer_norm_clip"),
    "grad_factor": on("scale", gg.identity),
}


def spike_sign(rule):
    """A rule on sign, that of 0 being 1."""

    def build(t):
        with gg.override_gradient(rule):
            return gg.heaviside(t["x"], 1.0) * 2.0 - 1.0

    return build


def usual(entry):
    """What is built by a rule of its own name, by its kind."""
    name, row = entry.name, getattr(entry, "row", None)
    if not entry.builds:
        sloped = row is not None and row.form.startswith("dx = dy * slope")
        return step(name) if sloped else on(name, gg.identity)
    return fanned(name) if "times" in signature(entry.make).parameters else made(name)


RULES = {name: usual(entry) for name, entry in R.library().items()} | RULES
