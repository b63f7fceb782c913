"""The index of nodes that is kept."""
