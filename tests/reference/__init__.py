"""The naive reference that the engine is compared with and timed against."""
