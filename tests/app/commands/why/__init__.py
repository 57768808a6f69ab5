"""Tests of `kindred why`."""
