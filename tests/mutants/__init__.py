"""Planted faults: whether the tests find realistic mistakes. `make mutants` tries them all."""
