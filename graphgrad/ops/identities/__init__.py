"""Identities that say something to gradients, or of the order."""
