"""`kindred doctor`: finds errors of a registration or a running service, and says how to fix them."""
