"""The events of the API server, into the mirror: reflectors, the feed, and how far the mirror can be trusted.

How a request reaches the API server is in `app.api_server`; what an object means is in `app.objects`.
"""
