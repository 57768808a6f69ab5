"""Why a pod fits or does not fit: explanations, the last decisions, their replay, and cases in the golden format.

Explanations run the same plugins as the verbs. This package has no HTTP and no text for a terminal.
"""
