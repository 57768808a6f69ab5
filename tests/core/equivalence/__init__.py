"""Tests of the equivalence cache."""
