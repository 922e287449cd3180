"""The rows of the table of identities, in the order in which they are tried."""
