"""Packages asked again: what each gives for a recorded case whose inputs are others now.

A package is a function of (case, tensors), which gives what it builds, or Given(ys, grads).
"""

import importlib
from functools import cache

import numpy as np

from .adapter import Given


@cache
def module(name):
    """A package, or a module of one."""
    return importlib.import_module(name)


def named(case):
    """What of its package a case is of."""
    return case["what"].partition(":")[2]


def torch_of(array, learns=False):
    """A torch tensor of an array."""
    floating = array.dtype.kind == "f"
    return module("torch").tensor(array, requires_grad=learns and floating)


def by_torch(package):
    """Outputs and gradients by autograd."""

    def run(case):
        torch = module("torch")
        t = {n: torch_of(a, n in case["grads"]) for n, a in case["inputs"].items()}
        made = package(case, t)
        if made is None:
            return None
        if isinstance(made, Given):
            return made.ys, made.grads
        ys = list(made) if isinstance(made, list | tuple) else [made]
        dys = [torch_of(d).to(y.dtype) for d, y in zip(case["dy"], ys, strict=True)]
        found = torch.autograd.grad(ys, [t[n] for n in case["grads"]], dys, allow_unused=True)
        grads = {
            n: np.zeros(t[n].shape) if g is None else g.numpy()
            for n, g in zip(case["grads"], found, strict=True)
        }
        return [y.detach().numpy() for y in ys], grads

    return run


def by_jax(package):
    """Outputs and gradients by vjp."""

    def run(case):
        jax = module("jax")
        jax.config.update("jax_enable_x64", True)
        names = list(case["grads"])
        fixed = {n: a for n, a in case["inputs"].items() if n not in names}

        def f(*xs):
            made = package(case, dict(zip(names, xs, strict=True)) | fixed)
            return tuple(made) if isinstance(made, list | tuple) else (made,)

        ys, back = jax.vjp(f, *[case["inputs"][n] for n in names])
        dys = tuple(np.asarray(d, y.dtype) for d, y in zip(case["dy"], ys, strict=True))
        return list(ys), dict(zip(names, back(dys), strict=True))

    return run


# --- packages -----------------------------------------------------------------------------------


def snntorch(case, t):
    """A slope on x."""
    name, p = named(case).partition(".")[2], case["params"]
    surrogate = module("snntorch.surrogate")
    if name == "LeakySpikeOperator":
        return None
    return getattr(surrogate, name)(**p)(t["x"])


def spikingjelly(case, t):
    """A slope on x."""
    surrogate = module("spikingjelly.activation_based.surrogate")
    renames = {"slope": "alpha"}
    given = {renames.get(k, k): v for k, v in case["params"].items()}
    return getattr(surrogate, named(case).rpartition(".")[2])(**given)(t["x"])


def entmax(case, t):
    """A sparse softmax or its loss."""
    return getattr(module("entmax"), named(case))(*t.values(), **case["params"])


def softjax(case, t):
    """A soft operator with a hard value."""
    name, given = named(case), case["params"]
    if name in ("argsort_st", "quantile_st", "norm"):
        given = given | {"axis": -1}
    made = getattr(module("softjax"), name)(*t.values(), **given)
    return made[0] if name == "top_k_st" else made


def optax(case):
    """A transformation of gradients, to which those that arrive are given."""
    optax, p, name = module("optax"), case["params"], named(case)
    module("jax").config.update("jax_enable_x64", True)
    if name == "safe_norm":
        return by_jax(lambda c, t: optax.safe_norm(t["x"], p["least"], axis=p["axis"]))(case)
    if name == "safe_root_mean_squares":
        return by_jax(lambda c, t: optax.safe_root_mean_squares(t["x"], p["least"]))(case)
    make = optax
    for part in name.split("."):
        make = getattr(make, part)
    given = dict(p)
    if name == "apply_if_finite":
        step = make(optax.identity(), max_consecutive_errors=p["errors"])
    elif name.startswith("per_example"):
        keys = {"limit": "l2_norm_clip" if "global" in name else "global_l2_norm_clip"}
        found, _ = make(list(case["dy"]), **{keys.get(k, k): v for k, v in given.items()})
        return case["y"], dict(zip(case["grads"], found, strict=True))
    else:
        names = {"limit": None, "epsilon": "eps"}
        args = [given.pop("limit")] if "limit" in given else []
        if name == "normalize_by_update_norm":
            given = {"eps": given["epsilon"]}
        step = make(*args, **{names.get(k) or k: v for k, v in given.items()})
    xs = list(case["inputs"].values())[: len(case["dy"])]
    found, _ = step.update(list(case["dy"]), step.init(xs), xs)
    return xs, dict(zip(case["grads"], found, strict=True))


def layers(t, p, activation="relu"):
    """The recorded network as modules."""
    torch = module("torch")
    nn, made = torch.nn, []
    acts = {"relu": nn.ReLU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh}
    count = sum(name.endswith("_weight") for name in t)
    for i in range(count):
        w, b = t[f"l{i}_weight"], t[f"l{i}_bias"]
        made.append(layer(w, b))
        if i < count - 1 or w.ndim == 4:
            made.append(acts[p["activation"]]())
        if w.ndim == 4:
            made.append(nn.Flatten())
    return nn.Sequential(*made)


def layer(w, b):
    """A linear layer or a convolution."""
    nn = module("torch").nn
    kind = nn.Conv2d if w.ndim == 4 else nn.Linear
    made = kind(w.shape[1], w.shape[0], *tuple(w.shape[2:])[:1], bias=b is not None).double()
    made.weight.data = w.data
    if b is not None:
        made.bias.data = b.data
    return made


ZENNIT = {
    "composite_epsilon_plus": "EpsilonPlus",
    "composite_alpha2beta1": "EpsilonAlpha2Beta1",
    "composite_epsilon_plus_flat": "EpsilonPlusFlat",
    "composite_alpha2beta1_flat": "EpsilonAlpha2Beta1Flat",
    "composite_epsilon_gamma_box": "EpsilonGammaBox",
    "excitation_backprop": "ExcitationBackprop",
    "composite_guided": "GuidedBackprop",
    "composite_deconvnet": "DeconvNet",
}


def zennit(case, t):
    """A rule on a layer, or a composite on the network."""
    nn, p = module("torch").nn, case["params"]
    if case["rule"] in ZENNIT:
        make = getattr(module("zennit.composites"), ZENNIT[case["rule"]])
        ends = {"low": torch_of(np.array(-3.0)), "high": torch_of(np.array(3.0))}
        with make(**(ends if "Box" in make.__name__ else {})).context(layers(t, p)) as marked:
            return answered(case, marked(t["x"]), t)
    name = named(case).rpartition(".")[2]
    given = {k: v for k, v in p.items() if k not in ("layer", "epsilon")}
    given = {k: torch_of(np.array(v)) if k in ("low", "high") else v for k, v in given.items()}
    if "epsilon" in p:
        given["epsilon" if name == "Epsilon" else "stabilizer"] = p["epsilon"]
    if name == "ReLUBetaSmooth":
        given = {"beta_smooth": p["beta"]}
    if name == "Norm":
        part = nn.AvgPool1d(2)
    else:
        part = layer(t["w"], t.get("b")) if "w" in t else nn.ReLU()
    rule = getattr(module("zennit.rules"), name)(**given)
    rule.register(part)
    return answered(case, part(t["x"]), t)


def answered(case, y, t):
    """What arrives at x while a package's hooks are there."""
    (dx,) = module("torch").autograd.grad(y, [t["x"]], torch_of(case["dy"][0]))
    return Given([y.detach().numpy()], {"x": dx.numpy()})


def captum(case, t):
    """An attribution of the network, of the output that is asked for."""
    attr, rules = module("captum.attr"), module("captum.attr._utils.lrp_rules")
    p, net = case["params"], layers(t, case["params"])
    target = torch_of(np.argmax(case["dy"][0], -1))
    name = named(case)
    y = net(t["x"]).detach().numpy()
    if name.startswith("LRP"):
        make = {
            "LRP.relevance_epsilon": lambda: rules.EpsilonRule(epsilon=p.get("epsilon", 1e-9)),
            "LRP.relevance_gamma": lambda: rules.GammaRule(gamma=p["gamma"]),
            "LRP.relevance_alpha1": rules.Alpha1_Beta0_Rule,
        }[name]
        for part in net:
            if hasattr(part, "weight"):
                part.rule = make()
        found = attr.LRP(net).attribute(t["x"], target=target)
    elif name == "DeepLift":
        found = attr.DeepLift(net).attribute(t["x"], baselines=t["reference"], target=target)
    else:
        found = getattr(attr, name)(net).attribute(t["x"], target=target)
    return Given([y], {"x": found.detach().numpy()})


def torchao(case, t):
    """Functions of low bits."""
    p, rule = case["params"], case["rule"]
    if rule in ("lsq_rows", "stretched_elastic"):
        paretoq = module("torchao.prototype.paretoq.models.utils_quant")
        make = getattr(paretoq, named(case).rpartition(".")[2])
        return make.apply(t["x"], t["step"], p["bits"], False)
    mask = module("torchao.sparsity.supermask")
    if rule == "apply_mask":
        return mask.ApplyMask.apply(t["w"], t["mask"])
    if rule == "supermask":
        zeros, ones = [module("torch").full_like(t["w"], float(v)) for v in (0, 1)]
        return mask.GetSubnet.apply(t["scores"], zeros, ones, p["sparsity"]) * t["w"]
    if rule == "fake_quantise_groups":
        primitives, torch = module("torchao.quantization.quant_primitives"), module("torch")
        return primitives._fake_quantize_affine(
            *(t[n].float() for n in ("x",)),
            (1, p["group"]),
            *(t[n].float() for n in ("step", "zero")),
            *(torch.int8, p["low"], p["high"]),
        )
    return None


def sae_lens(case, t):
    """Activations of dictionaries."""
    name, p = named(case).rpartition("."), case["params"]
    make = getattr(module(f"sae_lens.{name[0]}"), name[2])
    if name[2] in ("JumpReLU", "Step"):
        return make.apply(t["x"], t["threshold"], p["bandwidth"], p["to_input"])
    return make(p["k"])(t["x"])


def vector_quantize_pytorch(case, t):
    """Codes of a module that is told its codebook."""
    package, p, x, rule = module("vector_quantize_pytorch"), case["params"], t["x"], case["rule"]
    torch = module("torch")
    if rule == "fsq":
        made = package.FSQ(
            list(p["levels"]),
            preserve_symmetry=p.get("symmetric", False),
            bound_hard_clamp=p.get("hard", False),
        )
        return made(x)[0]
    if rule in ("lfq", "bsq"):
        made = package.LFQ(
            dim=x.shape[-1],
            codebook_size=2 ** x.shape[-1],
            codebook_scale=p["scale"],
            soft_clamp_input_value=p["clamp"],
            straight_through_activation=getattr(torch.nn, p["activation"].capitalize())(),
            spherical=rule == "bsq",
            force_quantization_f32=False,
        )
        return made.double()(x)[0]
    if rule == "sim_vq":
        made = package.SimVQ(x.shape[-1], len(t["codebook"]), rotation_trick=p["rotation"]).double()
        made.frozen_codebook.data, made.code_transform.weight.data = t["codebook"], t["matrix"].data
        return made(x)[0]
    if rule == "vq_rotate_to":
        return module("vector_quantize_pytorch.vector_quantize_pytorch").rotate_to(x, t["target"])
    if rule == "residual_lfq":
        made = package.ResidualLFQ(
            dim=x.shape[-1], num_quantizers=p["layers"], codebook_size=2 ** x.shape[-1]
        )
        return made(x)[0]
    if rule == "residual_fsq":
        made = package.ResidualFSQ(
            levels=list(p["levels"]), num_quantizers=p["layers"], dim=x.shape[-1]
        )
        return made(x)[0]
    if rule in ("vq_st", "vq_rotation", "vq_cosine", "vq_learned"):
        codes = t["codebook"].data.reshape(1, -1, x.shape[-1])
        cosine = rule == "vq_cosine"
        made = package.VectorQuantize(
            dim=x.shape[-1],
            codebook_size=codes.shape[1],
            rotation_trick=rule == "vq_rotation",
            use_cosine_sim=cosine,
            freeze_codebook=True,
        ).double()
        made._codebook.embed.data = codes / codes.norm(dim=-1, keepdim=True) if cosine else codes
        return made(x[None])[0][0] if x.ndim == 2 else made(x)[0]
    return None


PACKAGES = {
    "captum": by_torch(captum),
    "entmax": by_torch(entmax),
    "optax": optax,
    "sae-lens": by_torch(sae_lens),
    "snntorch": by_torch(snntorch),
    "softjax": by_jax(softjax),
    "spikingjelly": by_torch(spikingjelly),
    "torchao": by_torch(torchao),
    "vector-quantize-pytorch": by_torch(vector_quantize_pytorch),
    "zennit": by_torch(zennit),
}


def renewed(case):
    """The case with other inputs, of the same signs; what is whole stays."""
    rng = np.random.default_rng(sum(map(ord, case["id"])))

    def moved(a):
        return a if (a == np.rint(a)).all() else a * rng.uniform(0.8, 1.2, a.shape)

    inputs = {n: moved(a) for n, a in case["inputs"].items()}
    dy = case["dy"] if case["what"].startswith("captum") else [moved(d) for d in case["dy"]]
    return case | {"inputs": inputs, "dy": dy}
