"""A quick look at how fast graphgrad is here: `python -m graphgrad bench`."""
