"""The rules, one file a family. Each rule's docstring is its algebra."""
