"""The cluster mirror: the state of a cluster, kept by events, with what the plugins count kept incrementally."""
