"""Tests of the edge: the wire, HTTP, the dump, settings and the command line."""
