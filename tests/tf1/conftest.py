import pytest

from graphgrad.tf1.definition import DEFINITIONS
from graphgrad.tf1.registry import gradient_registry
from tests.tf1.recorded.running import LEGACY


@pytest.fixture
def own_gradients():
    """What a test, a document or an example registers is gone after it; what tf1 derives stays."""
    yield
    registry = gradient_registry._registry
    files = {path.name for path in LEGACY.glob("*.py")} | {"tf1.md", "test_document.py"}
    made = [n for n, e in registry.items() if e["location"].partition(":")[0] in files]
    for name in set(made).difference(DEFINITIONS):
        del registry[name]
