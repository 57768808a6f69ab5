"""Pods that are placed together, all or none (gangs): how they are placed, what is reserved, and their status."""
