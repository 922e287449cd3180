"""The subcommands of `python -m graphgrad` over graphs that Python functions build."""
