"""The events of the API server, into the mirror: reflectors, the feed, and how far the mirror can be trusted.

The client of the API server is in `app.api_server`, the decoding of objects in `app.objects`.
"""
