"""The measured usage of nodes: read at an interval from metrics.k8s.io or Prometheus, and given to the mirror.

The plugins that use it are in `core.plugins.load`. It is not in `app.watch`, as neither API can be watched.
"""
