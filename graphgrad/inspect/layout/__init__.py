"""What is visible of it, and what stands on it."""
