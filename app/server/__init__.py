"""The ports: listening, TLS, connections, bounded HTTP/1.1, who may come in, and the life of the process.

It knows requests and connections only, not what a verb answers.
"""
