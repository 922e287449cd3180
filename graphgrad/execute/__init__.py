"""EXECUTE: the backend protocol and the backends, found by entry point."""
