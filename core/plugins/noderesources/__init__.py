"""NodeResourcesFit and NodeResourcesBalancedAllocation: what nodes offer against what pods ask for."""
