"""`kindred why`: the chosen pod, the service or cluster to read, and the caller's missing rights.

Every request uses the caller's kubeconfig. Nothing is changed in the cluster.
"""
