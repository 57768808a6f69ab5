"""Kubernetes objects as frozen values, reduced to the fields that scheduling reads."""
