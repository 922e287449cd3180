"""What a tutorial starts with."""

import graphgrad as gg


def reset(_conf, _path):
    """Give the next tutorial a default graph of its own, and no rules of the last one."""
    gg.reset_default_graph()
    for name in set(gg.registered_gradients()) - BUILTIN:
        gg.unregister_gradient(name)


BUILTIN = set(gg.registered_gradients())
