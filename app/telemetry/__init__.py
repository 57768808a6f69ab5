"""Reports about Kindred: metrics, the request log, mismatches of the cache.

This package reads the others and changes none. No decision depends on it.
"""
