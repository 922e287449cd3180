"""Names of the inputs and outputs that a derivative adds to a model."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["STYLES", "AddedNames"]

STYLES = ("/", "_")


class AddedNames:
    """Names that a model does not have yet.

    style  "/": `gradient/x`; "_": `gradient_of_x`, an identifier in every language
    """

    def __init__(self, style: str, taken: Iterable[str]) -> None:
        self.style = style
        self._taken = set(taken)

    def new(self, kind: str, *of: str) -> str:
        """The name of a kind of derivative, with `__1` where the model has that name already."""
        base = self._spelled(kind, of)
        name, number = base, 0
        while name in self._taken:
            number += 1
            name = f"{base}__{number}"
        self._taken.add(name)
        return name

    def _spelled(self, kind: str, of: Iterable[str]) -> str:
        if self.style == "/":
            return "/".join([kind, *[name.strip("/") for name in of]])
        words = [re.sub(r"\W+", "_", name).strip("_") for name in of]
        return f"{kind}_of_{'_by_'.join(words)}"
