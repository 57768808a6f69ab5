"""The engine against the real plugins of a release on random cases: `python -m tests.parity --kubernetes 1.37`."""
