"""Tests of simulations: many pods placed, and the questions that need it."""
