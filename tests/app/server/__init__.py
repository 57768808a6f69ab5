"""Tests of the ports and the process."""
