"""Programs as files that need no graphgrad."""
