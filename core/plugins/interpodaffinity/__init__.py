"""InterPodAffinity: pods that want to be near, or away from, other pods."""
