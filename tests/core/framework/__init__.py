"""Tests of what plugins answer with."""
