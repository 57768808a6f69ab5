"""Tests of what turns API objects into events."""
