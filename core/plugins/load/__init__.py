"""Plugins that follow the load of nodes: what is measured, and what pods will add that are not measured yet."""
