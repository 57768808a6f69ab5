"""Tests of clusters from files."""
