"""Tests of JSON to the values of core."""
