"""The verbs filter, prioritize, bind and preempt, from bytes to bytes, and whose turn it is.

Nothing here knows of connections, metrics or people who ask why.
"""
