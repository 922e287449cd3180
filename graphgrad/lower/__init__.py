"""LOWER: in which order, in which slots, and which buffer may be written again."""
