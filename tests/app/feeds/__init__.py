"""The feeds of the mirror."""
