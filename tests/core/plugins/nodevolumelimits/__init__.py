"""Tests of NodeVolumeLimits."""
