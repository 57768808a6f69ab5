"""Tests of the parts of `bind`; of the whole, see test_binding.py."""
