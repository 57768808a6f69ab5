"""The equivalence-class result cache: what plugins said of nodes to a pod, kept for all pods of its class."""
