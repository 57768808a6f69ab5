"""InterPodAffinity: places pods near other pods, or away from them."""
