"""Tests of the table of releases."""
