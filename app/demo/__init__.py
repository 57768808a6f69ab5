"""The demo cluster and its requests, as package data, for trying `kindred`."""
