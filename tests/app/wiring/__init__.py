"""The construction of a service."""
