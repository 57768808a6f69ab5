"""NodeResourcesFit and NodeResourcesBalancedAllocation: requests of pods against allocatable resources of nodes."""
