"""The way in: what a file holds, checked, and the graph that its nodes become."""
