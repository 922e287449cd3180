"""What makes pages of the code when the site is built."""
