"""The machine that runs the loops of a program: one compiled function, and a table of records."""
