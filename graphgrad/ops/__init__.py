"""The vocabulary: one class is one op. Importing this package registers every op type."""
