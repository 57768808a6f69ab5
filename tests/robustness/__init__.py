"""Requests that nobody should send, at a service that must not mind."""
