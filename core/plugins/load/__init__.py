"""Plugins that follow the load of nodes: the measured usage, and the predicted usage of pods not measured yet."""
