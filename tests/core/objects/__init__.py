"""Tests of the values that the core reads objects into."""
