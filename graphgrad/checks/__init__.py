"""CHECK: is a rule right, which rules does a question use, what in a graph looks like a mistake."""
