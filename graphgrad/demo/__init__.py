"""The demo: user code on top of graphgrad, on real data. `python -m graphgrad demo` runs it."""
