"""Tests of VolumeRestrictions."""
