"""The cluster mirror: the state of a cluster, updated by events, with the plugins' counts updated incrementally."""
