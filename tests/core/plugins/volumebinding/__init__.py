"""Tests of VolumeBinding."""
