"""Planted faults: whether the tests find mistakes that somebody could make. `make mutants` tries them all."""
