"""The measured usage of nodes: read at an interval from metrics.k8s.io or Prometheus, and given to the mirror.

Not what plugins make of it (`core.plugins.load`), nor what is watched (`app.watch`): neither API can be watched.
"""
