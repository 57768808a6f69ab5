"""Explanations: the results of filter and prioritize for each node, with the part of each plugin."""
