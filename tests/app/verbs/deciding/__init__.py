"""Tests of `filter` that decides."""
