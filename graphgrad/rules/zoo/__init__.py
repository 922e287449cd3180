"""The zoo: published replacements of gradients, a table by families."""
