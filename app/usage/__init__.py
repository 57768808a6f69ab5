"""Reads the measured usage of nodes, at an interval, from metrics.k8s.io or Prometheus, and applies it to the mirror.

The plugins that use it are in `core.plugins.load`. This package is separate from `app.watch`, because neither API can
be watched.
"""
