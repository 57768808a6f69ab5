"""Tests of the client of the API server and its credentials."""
