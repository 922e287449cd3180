"""FILES: graphs, rules, values and functions in one file that every process can read."""
