"""Tests of pods that are placed together."""
