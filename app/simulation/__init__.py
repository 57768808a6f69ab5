"""The questions about what would happen, and what they ask of a cluster: the pods that come again, facts of pods.

This package has no routes, no text for a terminal, and places no pod.
"""
