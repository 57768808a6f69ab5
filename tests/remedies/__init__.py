"""Remedies applied to objects, after which fake controllers do what real ones would."""
