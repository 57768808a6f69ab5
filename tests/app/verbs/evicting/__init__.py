"""Tests of the parts of preemption; of the whole, see test_preempting.py and test_evicting.py."""
