"""Simulated schedulers against a running service."""
