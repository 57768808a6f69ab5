"""PodTopologySpread: spreads pods evenly over the domains of node labels."""
