"""Tests of the TLS of the ports that Kindred listens on."""
