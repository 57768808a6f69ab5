"""Tests of what makes a release."""
