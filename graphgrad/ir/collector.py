"""The cyclic collector, paused while many nodes are made: it would walk them again and again."""

from __future__ import annotations

import gc


class collector_paused:
    """Pause the collector for a block, and put it back as it was on every exit."""

    def __enter__(self) -> None:
        self.collecting = gc.isenabled()
        try:
            gc.disable()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exc: object) -> None:
        if self.collecting:
            gc.enable()
