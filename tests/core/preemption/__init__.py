"""Tests of preemption."""
