"""The prose linter: sentences and words of docs, docstrings, comments and messages. `python -m tests.prose` runs it."""
