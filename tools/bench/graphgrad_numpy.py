"""graphgrad with its NumPy backend, whatever else is installed."""

import importlib.util
from pathlib import Path

_spec = importlib.util.spec_from_file_location("adapter", Path(__file__).with_name("graphgrad.py"))
_adapter = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_adapter)


class Peer(_adapter.Peer):
    """The same, on NumPy."""

    backend = "numpy"
