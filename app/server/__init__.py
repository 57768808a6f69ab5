"""The ports: listening, TLS, connections, limits of HTTP/1.1, authentication, and the start and end of the process.

This package handles requests and connections, and is independent of the verbs.
"""
