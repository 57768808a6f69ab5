"""Plugins that score by node load: measured usage, plus predicted usage of pods that are not measured yet."""
