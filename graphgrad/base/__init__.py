"""What every floor uses: errors, locks, positions, names. Imports nothing of the project."""
