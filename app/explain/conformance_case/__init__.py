"""The contents of the mirror, written as a case of the golden data, so that a bug report is a test."""
