"""Tests of the package core.plugins.podtopologyspread."""
