"""Random programs on a backend against the ops' own kernels.

python tools/fuzz.py 0 1000                  the programs of these seeds on LLVM
python tools/fuzz.py 0 1000 --backend numpy  on NumPy
python tools/fuzz.py 17                      that of one seed, with the program

Prints what is wrong with each seed, and at last how many there were. See tests/fuzz/.
"""

import argparse
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.fuzz.agree import WAYS, check


def main() -> int:
    """Run the seeds; 1 where one fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int, nargs="?")
    parser.add_argument("--backend", choices=sorted(WAYS), default="llvm")
    given = parser.parse_args()
    last = given.first + 1 if given.last is None else given.last
    failed = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("GRAPHGRAD_CACHE", folder)
        for seed in range(given.first, last):
            try:
                check(seed, given.backend)
            except Exception as error:
                failed.append(seed)
                at = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{at.filename}:{at.lineno}"
                print(f"seed {seed}: {type(error).__name__}: {error} ({where})", flush=True)
    took = time.monotonic() - began
    print(f"{last - given.first} seeds, {len(failed)} wrong {failed}, {took:.0f} s")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
