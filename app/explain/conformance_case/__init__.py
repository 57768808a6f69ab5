"""Writes the contents of the mirror as a case of the golden data, so that a bug report can become a test."""
