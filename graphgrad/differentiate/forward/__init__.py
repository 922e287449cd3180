"""FORWARD MODE: the transpose of the reverse sweep, with every rule judged."""
