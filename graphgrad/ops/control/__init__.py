"""Control flow: choices and loops, whose bodies are graphs of their own."""

from .associative import associative_scan
from .bodies import (
    BODY_OF,
    BodyGraph,
    BodyScope,
    around,
    constants_of,
    given_here,
    interpret,
    needed,
    read_outside,
)
from .branches import Cond, choose, cond
from .conditional_loops import While
from .indexed_branches import switch
from .loops import fori_loop, map, scan, while_loop
from .row_loops import Scan, looped, row_numbers

__all__ = [
    "BODY_OF",
    "BodyGraph",
    "BodyScope",
    "Cond",
    "Scan",
    "While",
    "around",
    "associative_scan",
    "choose",
    "cond",
    "constants_of",
    "fori_loop",
    "given_here",
    "interpret",
    "looped",
    "map",
    "needed",
    "read_outside",
    "row_numbers",
    "scan",
    "switch",
    "while_loop",
]
