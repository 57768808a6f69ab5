"""Which pods to evict so that another pod fits: upstream's DefaultPreemption, computed on the mirror."""
