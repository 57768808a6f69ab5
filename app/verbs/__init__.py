"""The verbs filter, prioritize, bind and preempt, from bytes to bytes, and whose turn it is.

Nothing here depends on connections, metrics or explanations.
"""
