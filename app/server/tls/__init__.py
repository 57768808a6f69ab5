"""TLS of the ports that Kindred listens on."""
