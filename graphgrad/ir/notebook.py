"""What notebooks ask an object for: `inspect/notebook.py` answers, imported when one asks."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from ..base.lazy import LazyModule

__all__ = ["Kinds", "show_as_graph", "show_as_text"]

Kinds = Container[str] | None
_notebook = LazyModule("graphgrad.inspect.notebook")


def show_as_graph(cls: type) -> None:
    """Give a class whose objects have a picture the methods that notebooks look for."""

    def html(self: Any) -> str:
        return _notebook.graph_html(self)  # type: ignore[no-any-return]

    def svg(self: Any) -> str | None:
        return _notebook.graph_svg(self)  # type: ignore[no-any-return]

    def bundle(self: Any, include: Kinds = None, exclude: Kinds = None) -> dict[str, str]:
        return _notebook.graph_bundle(self, include, exclude)  # type: ignore[no-any-return]

    _put(cls, _repr_html_=html, _repr_svg_=svg, _repr_mimebundle_=bundle)


def show_as_text(cls: type) -> None:
    """The same for a class whose objects are best shown as they are printed."""

    def html(self: Any) -> str:
        return _notebook.text_html(self)  # type: ignore[no-any-return]

    def bundle(self: Any, include: Kinds = None, exclude: Kinds = None) -> dict[str, str]:
        return _notebook.text_bundle(self, include, exclude)  # type: ignore[no-any-return]

    _put(cls, _repr_html_=html, _repr_mimebundle_=bundle)


def _put(cls: Any, **methods: Callable[..., Any]) -> None:
    for name, method in methods.items():
        setattr(cls, name, method)
