"""Arguments of TensorFlow's that are not there: given, they are an error, never passed over."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar

__all__ = ["refuses"]

F = TypeVar("F", bound=Callable[..., Any])


def refuses(*names: str) -> Callable[[F], F]:
    """The function; NotImplementedError where one of these arguments is not as it is by default.

    Of a function that takes any keywords, each that it does not name is one of these.
    """

    def wrap(function: F) -> F:
        taken = signature(function)
        rest = [p.name for p in taken.parameters.values() if p.kind is Parameter.VAR_KEYWORD]

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            given = taken.bind(*args, **kwargs).arguments
            wrong = [n for n in names if n in given and _differs(given[n], taken.parameters[n])]
            wrong += list(given.get(rest[0], {})) if rest else []
            if wrong:
                raise NotImplementedError(
                    f"graphgrad.tf1 has no {', '.join(f'{n}=' for n in wrong)} of "
                    f"{function.__name__}(): it would change what comes out. Leave it as it is by "
                    "default, or write what it does with other ops."
                )
            return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    return wrap


def _differs(value: Any, parameter: Parameter) -> bool:
    default = parameter.default
    return value is not default and not (isinstance(value, type(default)) and value == default)
