"""The edge of Kindred: HTTP, process, files. Imports core; nothing in core imports it."""

__version__ = "0.1.0"
