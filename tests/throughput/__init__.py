"""Results of tests.e2e.throughput and tests.e2e.scheduler_perf: read, summed up, printed and drawn."""
