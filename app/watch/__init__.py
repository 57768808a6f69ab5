"""Keeps the mirror up to date with the API server: reflectors, the feed, and the mirror's freshness.

The client of the API server is in `app.api_server`, the decoding of objects in `app.objects`.
"""
