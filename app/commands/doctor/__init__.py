"""`kindred doctor`: says what is wrong with a registration or a running service, and how to mend it."""
