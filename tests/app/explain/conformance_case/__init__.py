"""Tests of the export of conformance cases."""
