"""`kindred why`: which pod is meant, who is asked about it, and what the caller may not do.

Everything is done with the caller's kubeconfig, and nothing is changed in the cluster.
"""
