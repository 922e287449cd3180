"""Random numbers: from explicit seeds, or new ones in every run.

A seed is an int or a scalar integer tensor (which a step can vary); `split` and `fold_in` make more
of one. The same call with the same seed draws the same numbers, on every backend; other seeds,
other numbers. Different functions draw independently of each other from one seed. Without a seed
the key is that of the graph's seed, the number of the draw in its graph, and the run, which the
State counts (`keys`).

All is made of the words of Philox, a counter-based generator (`philox`): bits and integers are the
same on every backend, floats to a few units in the last place.
"""

from .discrete import *  # noqa: F403
from .discrete import __all__ as _discrete
from .gammas import *  # noqa: F403
from .gammas import __all__ as _gammas
from .keys import *  # noqa: F403
from .keys import __all__ as _keys
from .multinomial import *  # noqa: F403
from .multinomial import __all__ as _multinomial
from .uniform import *  # noqa: F403
from .uniform import __all__ as _uniform
from .vectors import *  # noqa: F403
from .vectors import __all__ as _vectors
from .wald import *  # noqa: F403
from .wald import __all__ as _wald

__all__ = sorted([*_discrete, *_gammas, *_keys, *_multinomial, *_uniform, *_vectors, *_wald])
