"""The same elements elsewhere: reshaped, sliced, joined, padded, indexed."""
