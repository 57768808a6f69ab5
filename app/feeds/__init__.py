"""Feeds the mirror: reflectors that watch the API server, a dump from a file, the measured usage of nodes, the release.

The client of the API server is in `app.api_server`, the decoding of objects in `app.objects`.
"""
