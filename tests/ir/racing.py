"""Threads that do the same at once, for tests of what they share."""

import sys
from concurrent.futures import ThreadPoolExecutor


def race(work, threads=8):
    """What work() returns in each of the threads, which take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda _: work(), range(threads)))
    finally:
        sys.setswitchinterval(interval)
