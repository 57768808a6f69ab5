"""Tests of leader election."""
