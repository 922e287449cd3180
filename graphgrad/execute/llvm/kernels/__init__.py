"""Products, convolutions, scatters, searches and draws as compiled code."""
