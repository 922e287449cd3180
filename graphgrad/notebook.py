"""What stands above inspect, as notebooks show it: put in place when graphgrad is imported."""

from __future__ import annotations

from .checks.explain import Explanation
from .compiled import CompiledFunction
from .inspect.notebook import show_as_graph, show_as_text

show_as_graph(CompiledFunction)
show_as_text(Explanation)
