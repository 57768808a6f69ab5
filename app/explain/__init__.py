"""Why a pod fits or does not fit: explanations, and the last decisions.

Explanations run the same plugins as the verbs. This package has no HTTP and no text for a terminal.
"""
