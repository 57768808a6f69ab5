"""The interface of a plugin, and its results."""
