"""MARK: scopes that mark regions and op types, the registry of rules, the boundary of a region."""
