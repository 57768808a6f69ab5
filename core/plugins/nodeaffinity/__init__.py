"""NodeAffinity: the nodes that a pod may or should be on, by their labels and names."""
