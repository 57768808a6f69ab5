"""Pods that are placed together, all or none (gangs): their placement, their reservations, and their status."""
