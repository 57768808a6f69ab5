"""The verbs filter, prioritize, bind and preempt, from bytes to bytes, and the queue before them.

Nothing here depends on connections, metrics or explanations.
"""
