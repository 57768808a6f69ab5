"""The demo cluster and requests that `kindred` can be tried with, as package data."""
