"""Tests of DynamicResources."""
