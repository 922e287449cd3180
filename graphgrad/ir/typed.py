"""What type checkers know of nestings of tensors: the aliases and TypeVars of public signatures.

Where tensors come back for tensors, a TypeVar carries the structure, however deep. Where arrays
come back for tensors, overloads tell a tensor from a list, dict or tuple of tensors; what is nested
deeper is Any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

import numpy as np

from .node import Tensor

Nest: TypeAlias = list[Any] | tuple[Any, ...] | dict[Any, Any]
Tree: TypeAlias = Tensor | Nest
Total: TypeAlias = "Tree | Literal[0]"
"""Python's `sum` of tensors is a tensor or 0 to checkers, which do not count what it adds."""

Leaf: TypeAlias = "Tensor | complex | np.generic[Any] | np.ndarray[Any, Any]"
"""A tensor, or a number or an array, which becomes one."""

MaybeNone: TypeAlias = Any
"""In `X | MaybeNone`: any tensor in X may be None, and no checker insists on a test for it.

What no tensor has is still an error. typeshed has the same alias for the same reason: who asks for
a gradient mostly knows that there is one.
"""


K = TypeVar("K")
P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
X = TypeVar("X", bound=Tree)
Y = TypeVar("Y", bound="Total | None")

if TYPE_CHECKING:  # an annotation may name a class of T alone, and mean any T
    from typing_extensions import TypeVar as TypeVarWithDefault

    T_co = TypeVarWithDefault("T_co", covariant=True, default=Any)
else:
    T_co = TypeVar("T_co", covariant=True)


class Named(Protocol):
    """A NamedTuple; one whose fields are tensors has no type with arrays in their place."""

    def _asdict(self) -> dict[str, Any]: ...


class AnyFunction(Protocol[R_co]):
    """A function of anything that returns R."""

    def __call__(self, *args: Any, **kwargs: Any) -> R_co:
        """Its result."""


# A function, by how many tensors it takes, so that checkers know the parameters of a lambda. OfAny
# is what is none of the others. Its form without parameters keeps other lambdas out, which mypy
# measures by the one Callable of a union: a lambda of two kinds would be a function of Any.

OfOne: TypeAlias = Callable[[Tensor], R]
OfTwo: TypeAlias = Callable[[Tensor, Tensor], R]
OfMore: TypeAlias = Callable[Concatenate[Any, Any, Any, P], R]
OfAny: TypeAlias = Callable[[], R] | AnyFunction[R]
