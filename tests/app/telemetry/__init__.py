"""Tests of what Kindred reports of itself."""
