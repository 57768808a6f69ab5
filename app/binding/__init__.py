"""The verb `bind`."""
