"""The commands that ask what would happen: their sources, the choice of nodes, and the text that they print."""
