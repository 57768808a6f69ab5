"""NodeResourcesFit and NodeResourcesBalancedAllocation: allocatable resources of nodes against requests of pods."""
