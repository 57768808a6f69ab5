"""The ports: listening, TLS, connections, bounded HTTP/1.1, who may come in, and the life of the process.

It handles requests and connections, and is independent of the verbs.
"""
