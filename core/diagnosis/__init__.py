"""Explanations: the results of filter and prioritize for each node, in their parts."""
