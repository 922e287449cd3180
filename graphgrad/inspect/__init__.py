"""Looking at a graph: pictures and listings of what was built, marked and spliced."""
