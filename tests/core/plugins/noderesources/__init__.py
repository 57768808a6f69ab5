"""Tests of NodeResourcesFit and NodeResourcesBalancedAllocation."""
