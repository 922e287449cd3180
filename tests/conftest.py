"""What all tests share: "auto" is NumPy, whose results many of them expect to the last bit.

Set GRAPHGRAD_BACKEND to run them on another backend; the laws run on every backend anyway.
"""

import os

os.environ.setdefault("GRAPHGRAD_BACKEND", "numpy")
