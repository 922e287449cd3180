"""What flows: errors, types, nodes, graphs, programs. Imports nothing of the project."""
