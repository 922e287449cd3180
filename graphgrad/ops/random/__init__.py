"""Random numbers: from explicit seeds, or new ones in every run.

A seed is an int or a scalar integer tensor (which a step can vary); `split` and `fold_in` make more
of one. The same call with the same seed draws the same numbers, on every backend; other seeds,
other numbers. Different functions draw independently of each other from one seed. Without a seed
the key is that of the graph's seed, the number of the draw in its graph, and the run, which the
State counts (`keys`).

All is made of the words of Philox, a counter-based generator (`philox`): bits and integers are the
same on every backend, floats to a few units in the last place.
"""

from .continuous import *  # noqa: F403
from .continuous import __all__ as _continuous
from .counts import *  # noqa: F403
from .counts import __all__ as _counts
from .discrete import *  # noqa: F403
from .discrete import __all__ as _discrete
from .gammas import *  # noqa: F403
from .gammas import __all__ as _gammas
from .inverse_gaussian import *  # noqa: F403
from .inverse_gaussian import __all__ as _inverse_gaussian
from .keys import *  # noqa: F403
from .keys import __all__ as _keys
from .vectors import *  # noqa: F403
from .vectors import __all__ as _vectors

__all__ = sorted(
    [*_discrete, *_gammas, *_keys, *_counts, *_continuous, *_vectors, *_inverse_gaussian]
)
