"""A plan as a function of arrays: its runs, its memory, its threads and its clock."""
