"""Golden data held against the engine: `python -m tests.conformance FILE...`."""
