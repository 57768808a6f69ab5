"""Groups of pods that are placed together, all or none (gangs): placement, reservations and status."""
