"""The bench cluster and what is timed on it."""
