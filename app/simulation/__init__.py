"""What the questions of core.simulation ask of a cluster: the pods that come again, and facts that the mirror lacks.

This package has no HTTP, no text for a terminal, and places no pod.
"""
