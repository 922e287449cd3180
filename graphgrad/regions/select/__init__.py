"""SELECT: what a mark or an override is for, said afterwards and without an edit of the model.

A selection is a question to a graph, asked when it is used. Its answer is a list of *targets*: a
node, a region, or a group of nodes that is to become one region.
"""

from .api import Selection, as_selection, op_types, select, targets_of
from .targets import Group, Target, covered, is_in, members_of, nodes_of

__all__ = [
    "Group",
    "Selection",
    "Target",
    "as_selection",
    "covered",
    "is_in",
    "members_of",
    "nodes_of",
    "op_types",
    "select",
    "targets_of",
]
