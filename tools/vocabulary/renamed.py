"""Peers, and what graphgrad calls what they have.

peer -> (our modules, {their name: ours}, names that are no functions of a graph: printing,
files, settings)
"""

_1D2D3D = {
    f"{theirs}{d}d": f"nn.{ours}"
    for d in (1, 2, 3)
    for theirs, ours in {
        "conv": "conv",
        "conv_transpose": "conv_transpose",
        "avg_pool": "avg_pool",
        "max_pool": "max_pool",
        "lp_pool": "lp_pool",
        "max_unpool": "max_unpool",
        "adaptive_avg_pool": "adaptive_avg_pool",
        "adaptive_max_pool": "adaptive_max_pool",
        "dropout": "dropout",
        "fractional_max_pool": "fractional_max_pool",
    }.items()
}

_1D2D3D |= {
    f"{name}{d}d_with_indices": f"nn.{name}_with_indices"
    for d in (1, 2, 3)
    for name in ("max_pool", "adaptive_max_pool", "fractional_max_pool")
}

_NO_FUNCTIONS = """
array_repr array_str from_dlpack frombuffer fromfile fromiter fromstring frompyfunc get_printoptions
set_printoptions printoptions load save savez einsum_path isscalar issubdtype iterable
"""
_TORCH_NO_FUNCTIONS = """
Optional assert_int_or_pair handle_torch_function has_torch_function has_torch_function_unary
has_torch_function_variadic boolean_dispatch multi_head_attention_forward grouped_mm scaled_mm
scaled_grouped_mm celu_ elu_ hardtanh_ leaky_relu_ relu_ rrelu_ selu_ threshold_
"""
"""Helpers of its own, products of packed weights, and what writes into its argument."""

_JAX_PACKED = "get_scaled_dot_general_config scaled_dot_general scaled_matmul"
"""Products of blocks of eight-bit numbers with scales, and their settings."""

_KEYS = "PRNGKey clone key key_data key_dtype key_impl wrap_key_data"
"""Keys as objects; graphgrad's are integers."""

PEERS: dict[str, tuple[tuple[str, ...], dict[str, str], frozenset[str]]] = {
    "jax.numpy": (
        ("graphgrad",),
        {
            "select": "where_first",
            "astype": "cast",
            "fill_diagonal": "at",
            "place": "at",
            "put": "at",
        },
        frozenset(_NO_FUNCTIONS.split()),
    ),
    "jax.nn": (
        ("graphgrad.nn", "graphgrad"),
        {"hard_swish": "nn.hard_silu", "swish": "nn.silu"},
        frozenset(_JAX_PACKED.split()),
    ),
    "torch.nn.functional": (
        ("graphgrad.nn", "graphgrad"),
        {
            **_1D2D3D,
            "logsigmoid": "nn.log_sigmoid",
            "hardsigmoid": "nn.hard_sigmoid",
            "hardswish": "nn.hard_silu",
            "hardtanh": "nn.hard_tanh",
            "softsign": "nn.soft_sign",
            "feature_alpha_dropout": "nn.alpha_dropout",
            "native_channel_shuffle": "nn.channel_shuffle",
            "triplet_margin_with_distance_loss": "nn.triplet_margin_loss",
            "nll_loss": "nn.nll_loss",
            "conv_tbc": "nn.conv",
            "linear_cross_entropy": "nn.cross_entropy",
            "upsample": "nn.interpolate",
            "upsample_bilinear": "nn.interpolate",
            "upsample_nearest": "nn.interpolate",
        },
        frozenset(_TORCH_NO_FUNCTIONS.split()),
    ),
    "jax.scipy.special": (("graphgrad.special", "graphgrad", "graphgrad.nn"), {}, frozenset()),
    "jax.random": (
        ("graphgrad.random",),
        {
            "randint": "random.integers",
            "t": "random.student_t",
            "weibull_min": "random.weibull",
        },
        frozenset(_KEYS.split()),
    ),
    "jax.numpy.linalg": (("graphgrad.linalg",), {}, frozenset()),
    "jax.numpy.fft": (("graphgrad.fft",), {}, frozenset()),
}
