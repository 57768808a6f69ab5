"""Amounts of hand-made clusters."""
