"""The vocabulary: one class is one op."""
