"""Tests of the mirror and of what it keeps counted."""
