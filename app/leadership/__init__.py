"""Which of several replicas decides: the holder of a Lease."""
