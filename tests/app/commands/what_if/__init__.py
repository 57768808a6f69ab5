"""Tests of app.commands.what_if."""
