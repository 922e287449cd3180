"""DIFFERENTIATE: the reverse sweep over nodes and regions, and the rules it calls."""
