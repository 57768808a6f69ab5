"""Tests of inter-pod affinity by tables; tests/conformance and tests/properties compare it with other sources."""
