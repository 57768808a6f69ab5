"""Results of tests.e2e.throughput: read, summed up and printed, and the modes that it measures."""
