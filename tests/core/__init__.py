"""Unit and table tests of the core, one file for each of its modules."""
