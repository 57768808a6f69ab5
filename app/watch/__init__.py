"""Sources of cluster state: what turns API objects, from wherever they come, into events for the mirror."""
