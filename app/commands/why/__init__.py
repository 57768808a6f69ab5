"""`kindred why`: the chosen pod, the service or cluster to read, and the caller's missing rights.

Everything is done with the caller's kubeconfig, and nothing is changed in the cluster.
"""
