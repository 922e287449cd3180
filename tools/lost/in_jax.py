"""JAX: jax.custom_vjp."""

import jax
import jax.export
import jax.extend
import jax.numpy as jnp
import numpy as np
from rows import own

jax.config.update("jax_enable_x64", True)

NAME = "JAX"
VERSIONS = {"jax": jax.__version__}
API = "https://docs.jax.dev/en/latest/_autosummary/jax.custom_vjp"
DOCUMENTED = {
    "forward": API + ".html",
    "value": API + ".defvjp.html",
    "written_out": API + ".defvjp.html",
    "dtype": API + ".defvjp.html",
}
NOT_OFFERED = {
    "theirs": "programs of other frameworks are not opened",
    "afterwards": "rules are put on functions when they are written",
    "choose": "a function has one rule",
}
CANNOT_BE = {"misspelt": "a rule is given as functions"}


def with_rule(f, fwd=None, bwd=lambda x, dy: (dy * 6 * x**2,)):
    """A function with the rule."""
    g = jax.custom_vjp(f)
    g.defvjp(fwd or (lambda x: (g(x), x)), bwd)
    return g


cube = with_rule(lambda x: x**3)


def square(x):
    return cube(x) ** 2


def first():
    return float(jax.grad(square)(2.0))


def many_ops():
    many = with_rule(lambda x: jnp.exp(3 * jnp.log(x)))
    return float(jax.grad(lambda x: many(x) ** 2)(2.0))


def second():
    return float(jax.grad(jax.grad(square))(2.0))


def kept():
    f = with_rule(lambda x: x**3, lambda x: (f(x), 6 * x**2), lambda slope, dy: (dy * slope,))
    return float(jax.grad(jax.grad(lambda x: f(x) ** 2))(2.0))


def branch():
    f = with_rule(lambda x: x**3, bwd=lambda x, dy: (dy * 6 * x**2 if dy > 0 else 0 * dy,))
    return float(jax.grad(lambda x: f(x) ** 2)(2.0))


def opaque():
    def bwd(x, dy):
        number = jax.ShapeDtypeStruct((), x.dtype)
        return (jax.pure_callback(lambda x, dy: np.asarray(dy * 6 * x**2), number, x, dy),)

    f = with_rule(lambda x: x**3, bwd=bwd)
    return float(jax.grad(jax.grad(lambda x: x * f(x) ** 2))(2.0))


def forward():
    return float(jax.jvp(square, (2.0,), (1.0,))[1])


def normalised(v):
    """The sum of squares of a vector whose gradient a rule normalises."""
    f = with_rule(lambda v: v, bwd=lambda _, dy: (dy / jnp.linalg.norm(dy),))
    return jnp.sum(f(v) ** 2)


def per_example():
    return jax.vmap(jax.grad(normalised))(jnp.array([[3.0, 4.0], [6.0, 8.0]])).tolist()


def through_vmap():
    batch = jnp.array([[3.0, 4.0], [6.0, 8.0]])
    return jax.grad(lambda batch: jnp.sum(jax.vmap(normalised)(batch)))(batch).tolist()


def compiled():
    return float(jax.grad(jax.jit(square))(2.0))


def compiled_whole():
    return float(jax.jit(jax.grad(square))(2.0))


def compiled_second():
    return float(jax.jit(jax.grad(jax.grad(jax.jit(square))))(2.0))


def checkpointed():
    return float(jax.grad(jax.checkpoint(square))(2.0))


def in_loop():
    def twice(x):
        return jax.lax.scan(lambda c, _: (cube(c), None), x, length=2)[0]

    return float(jax.grad(twice)(2.0))


def around_loop():
    f = with_rule(lambda x: jax.lax.fori_loop(0, 3, lambda _, c: c * x, 1.0))
    return float(jax.grad(lambda x: f(x) ** 2)(2.0))


def copied():
    traced = jax.extend.core.jaxpr_as_fun(jax.make_jaxpr(square)(1.0))
    return float(jax.grad(lambda x: traced(x)[0])(2.0))


def saved():
    """With the derivative, of as many orders as are asked for when it is saved."""
    exported = jax.export.export(jax.jit(square))(jax.ShapeDtypeStruct((), "float64"))
    loaded = jax.export.deserialize(exported.serialize(vjp_order=1))
    return float(jax.grad(loaded.call)(2.0))


def captured():
    def answer(x):
        w = 1.0 * x
        return with_rule(lambda x: w * x**3)(x)

    return float(jax.grad(answer)(2.0))


def shape():
    f = with_rule(lambda x: x, bwd=lambda x, dy: (jnp.broadcast_to(dy, (3, 2)),))
    return jax.grad(lambda x: jnp.sum(f(x)))(jnp.array([1.0, 2.0])).tolist()


def dtype():
    """It is passed on unchecked."""
    f = with_rule(lambda x: x, bwd=lambda x, dy: ((dy / 3).astype("float32"),))
    return float(jax.grad(f)(2.0))


def value():
    """The forward pass is written twice, and `grad` computes the second version: nothing compares
    the two.
    """
    f = with_rule(lambda x: x**2, lambda x: (1000 * x**2, x), lambda x, dy: (2 * x * dy,))
    return float(jax.value_and_grad(f)(3.0)[0])


@own("a `custom_jvp` in `lax.scan`, differentiated twice", 1536.0)
def jvp_in_scan():
    """The derivative of the loop is taken as of plain code the second time. (JAX 0.12 keeps the
    rule.)"""

    @jax.custom_jvp
    def cube(x):
        return x**3

    cube.defjvps(lambda dx, y, x: dx * 6 * x**2)

    def once(x):
        return jax.lax.scan(lambda c, _: (cube(c), None), x, length=1)[0]

    return float(jax.grad(jax.grad(lambda x: once(x) ** 2))(2.0))


@own("the forward pass written out in `fwd`, second order", 1536.0)
def written_out():
    """`fwd` computes the value as `x**3` rather than by calling the function that has the rule, so
    the second derivative ignores the rule.
    """
    f = with_rule(lambda x: x**3, lambda x: (x**3, x))
    return float(jax.grad(jax.grad(lambda x: f(x) ** 2))(2.0))
