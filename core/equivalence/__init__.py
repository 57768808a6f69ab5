"""The equivalence cache: the results of plugins for a pod, kept for all pods of its class."""
