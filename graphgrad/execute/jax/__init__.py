"""Programs on JAX, under jax.jit."""
