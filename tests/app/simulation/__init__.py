"""Tests of app.simulation."""
