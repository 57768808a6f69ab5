"""Tests of the plugins that follow the load of nodes."""
