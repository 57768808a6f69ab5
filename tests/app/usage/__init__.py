"""Tests of what reads the usage of nodes."""
