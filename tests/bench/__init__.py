"""The bench cluster, and the benchmarks on it."""
