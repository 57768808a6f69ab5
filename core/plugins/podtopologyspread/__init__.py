"""PodTopologySpread: pods that want to be spread evenly over the domains of node labels."""
